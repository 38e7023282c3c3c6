/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recorder/config-reload.h"

#include <errno.h>
#include <string.h>

#include "call/answer.h"
#include "protocol/value.h"
#include "recorder/host-check.h"
#include "store/disk/disk.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * Sessions are matched by name. A session with unchanged keys goes on; one with other limits goes
 * on with the new limits; one with other events ends without stopping the others and starts again
 * when its last segment is finished; one that a client stopped stays stopped. Before anything
 * changes, the events that would be opened are opened on trial: if one of them fails, the old
 * configuration stays. When the file names a session that Start() began, the session in the file
 * replaces it.
 */

#define CHECK_MAX_NS (2 * NS_PER_SECOND)

static void config_reload_on_problem(void *userdata, const char *path, unsigned line,
                                     const char *problem) {
    Reload *reload = userdata;

    config_log_problem(NULL, path, line, problem);
    value_append(&reload->problems, json_pack("{s:o, s:o, s:o}", "path", answer_text(path), "line",
                                              answer_count(line), "text", answer_text(problem)));
}

static void config_reload_begin(const Reload *reload, SessionEntry *entry, bool paused) {
    (void)session_table_begin(reload->sessions, entry, paused);
}

static int config_reload_add(const Reload *reload, const SessionConfig *config,
                             SessionEntry **ret) {
    *ret = session_table_find(reload->sessions, config->name);
    return *ret ? 0 : session_table_add(reload->sessions, config, false, NULL, ret);
}

/* Drop the settings and the duration that Start() passed: the configuration file owns the session
 * now. */
static void config_reload_take_from_client(SessionEntry *entry) {
    entry->runtime = false;
    json_decref(entry->settings);
    entry->settings = NULL;
    entry->stop_at_ns = entry->duration_ns = 0;
}

static int config_reload_apply_new(const Reload *reload, const SessionConfig *config) {
    bool was_runtime;
    SessionEntry *entry;
    int r = config_reload_add(reload, config, &entry);

    if (r < 0)
        return log_error(r, "Failed to add session '%s': %m", config->name);
    was_runtime = entry->runtime;
    if (was_runtime)
        config_reload_take_from_client(entry);
    entry->config = *config;
    if (!entry->session)
        config_reload_begin(reload, entry, false);
    else if (was_runtime || entry->state == SESSION_STOPPING)
        (void)session_table_end(reload->sessions, entry, NEXT_BEGIN);
    else
        session_configure(entry->session, config);
    return 0;
}

static void config_reload_reopen(const Reload *reload, SessionEntry *entry,
                                 const SessionConfig *config) {
    bool paused = entry->state == SESSION_PAUSED;

    entry->config = *config;
    if (session_entry_records(entry))
        (void)session_table_end(reload->sessions, entry, paused ? NEXT_BEGIN_PAUSED : NEXT_BEGIN);
    else if (entry->state == SESSION_FAILED || session_entry_is_opening(entry))
        config_reload_begin(reload, entry, paused);
}

static int config_reload_apply_session(void *userdata, ConfigFate fate, const SessionConfig *old,
                                       const SessionConfig *new) {
    const Reload *reload = userdata;
    SessionEntry *entry = session_table_find(reload->sessions, new ? new->name : old->name);

    if (fate == CONFIG_ADDED)
        (void)config_reload_apply_new(reload, new);
    if (!entry)
        return 0;
    if (fate == CONFIG_LIMITED) {
        entry->config = *new;
        if (session_entry_records(entry))
            session_configure(entry->session, new);
    }
    if (fate == CONFIG_REOPENED)
        config_reload_reopen(reload, entry, new);
    if (fate == CONFIG_REMOVED && entry->session)
        (void)session_table_end(reload->sessions, entry, NEXT_NOTHING);
    else if (fate == CONFIG_REMOVED &&
             (session_entry_is_opening(entry) || entry->state == SESSION_FAILED))
        session_table_abandon(reload->sessions, entry);
    return 0;
}

/* Removes sessions that the file no longer names, and lists disabled ones so that a client can
 * start them by name. */
static void config_reload_settle_rest(const Reload *reload, const Config *config) {
    for (size_t i = session_table_count(reload->sessions); i-- > 0;) {
        SessionEntry *entry = session_table_at(reload->sessions, i);

        if (entry->runtime || config_session(config, entry->config.name))
            continue;
        if (entry->session)
            (void)session_table_end(reload->sessions, entry, NEXT_REMOVE);
        else
            session_table_remove(reload->sessions, entry);
    }
    for (uint32_t i = 0; i < config->n_sessions; i++) {
        const SessionConfig *session = &config->sessions[i];
        SessionEntry *entry = session_table_find(reload->sessions, session->name);

        if (!entry && session_table_add(reload->sessions, session, false, NULL, &entry) < 0)
            continue;
        if (!session_entry_records(entry) && !entry->runtime)
            entry->config = *session;
    }
}

/* An unchanged session that records already has proved that its events can be opened. */
static bool config_reload_opens_anew(const Reload *reload, const SessionConfig *session) {
    const Config *old = *reload->config;
    ConfigFate fate = config_session_fate(config_session(old, session->name), session);
    const SessionEntry *entry = session_table_find(reload->sessions, session->name);

    if (!session->enabled)
        return false;
    return fate == CONFIG_ADDED || fate == CONFIG_REOPENED || !entry ||
           entry->state == SESSION_FAILED ||
           (session_entry_records(entry) &&
            plan_notes_left_out(sampler_notes(session_sampler(entry->session))));
}

void reload_read(Reload *reload) {
    int r;

    disk_touch(__func__);
    reload->problems = json_array();
    r = config_load(reload->path, config_reload_on_problem, reload, &reload->read);
    reload->error = MIN(r, 0);
    reload->n_problems = MAX(r, 0);
}

static bool config_reload_is_good(const Reload *reload) {
    return reload->error == 0 && reload->n_problems == 0;
}

/* Sessions that are started meanwhile wait for the check, so a slow host gets a limit. */
bool reload_prepare(Reload *reload) {
    uint64_t until_ns = clock_monotonic_ns() + CHECK_MAX_NS;
    bool any = false;

    if (!config_reload_is_good(reload))
        return false;
    for (uint32_t i = 0; i < reload->read->n_sessions; i++) {
        const SessionConfig *session = &reload->read->sessions[i];
        const SessionEntry *entry = session_table_find(reload->sessions, session->name);
        CheckOptions *check = &reload->checks[i];
        const CpuList *online;

        reload->is_checked[i] = config_reload_opens_anew(reload, session);
        if (!reload->is_checked[i])
            continue;
        *check = sampler_check_options(reload->sampler, entry && session_entry_records(entry)
                                                            ? session_sampler(entry->session)
                                                            : NULL);
        check->until_ns = until_ns;
        online = check->online;
        check->online = &reload->online;
        if (!any)
            reload->error = cpu_list_copy(online, &reload->online);
        any = true;
    }
    return any && reload->error == 0;
}

void reload_check(Reload *reload) {
    for (uint32_t i = 0; i < reload->read->n_sessions && reload->error == 0; i++) {
        int r = reload->is_checked[i] ? host_check_session(&reload->checks[i], reload->read,
                                                           &reload->read->sessions[i],
                                                           config_reload_on_problem, reload)
                                      : 0;

        reload->error = MIN(r, 0);
        reload->n_problems += MAX(r, 0);
    }
}

static int config_reload_refuse(const Reload *reload) {
    int r = reload->error, n = reload->n_problems;

    if (r < 0)
        return log_struct(LOG_LEVEL_ERROR, r == -EINVAL ? -EIO : r,
                          LOG_FIELDS({"PROFD_EVENT", "reload-refused"}),
                          "Failed to read the configuration again, keeping the old one: %m");
    return log_struct(LOG_LEVEL_ERROR, -EINVAL, LOG_FIELDS({"PROFD_EVENT", "reload-refused"}),
                      "The configuration has %d problem%s, keeping the old one", n,
                      n == 1 ? "" : "s");
}

int reload_apply(Reload *reload) {
    Config *config = reload->read;

    if (!config_reload_is_good(reload))
        return config_reload_refuse(reload);
    if (config_touches(*reload->config, config) & CONFIG_TOUCHES_RESTART)
        log_notice("Some changed keys take effect at the next start of profd");
    config_keep_until_restart(*reload->config, config);
    (void)config_diff(*reload->config, config, config_reload_apply_session, reload);
    config_reload_settle_rest(reload, config);
    store_configure(reload->store, config);
    config_free(*reload->config);
    *reload->config = TAKE_PTR(reload->read);
    log_struct(LOG_LEVEL_NOTICE, 0, LOG_FIELDS({"PROFD_EVENT", "reloaded"}),
               "Reloaded the configuration");
    return 0;
}

void reload_done(Reload *reload) {
    reload->read = config_free(reload->read);
    json_decref(reload->problems);
    cpu_list_done(&reload->online);
}
