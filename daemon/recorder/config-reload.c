/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recorder/config-reload.h"

#include <errno.h>
#include <string.h>

#include "recorder/host-check.h"
#include "util/log.h"

/*
 * A session is known by its name. One that reads the same goes on; one with other limits goes on
 * with these; one with other events ends, beside the others, and begins anew when its last segment
 * is finished; one that somebody stopped stays so. Before anything changes, events that are to be
 * opened are tried: where one of them cannot be, the configuration before stays. Where the file
 * names one that Start() began, the file's takes its place.
 */

static void on_problem(void *userdata, const char *path, unsigned line, const char *problem) {
    const Reload *reload = userdata;

    config_log_problem(NULL, path, line, problem);
    if (reload->on_problem)
        reload->on_problem(reload->userdata, path, line, problem);
}

static void begin(const Reload *reload, Member *member, bool paused) {
    (void)roster_begin(reload->roster, member, paused);
}

static int add(const Reload *reload, const SessionConfig *config, Member **ret) {
    *ret = roster_find(reload->roster, config->name);
    return *ret ? 0 : roster_add(reload->roster, config, false, NULL, ret);
}

/* What Start() gave it holds no more. */
static void take_from_client(Member *member) {
    member->runtime = false;
    json_decref(member->settings);
    member->settings = NULL;
}

static int apply_new(const Reload *reload, const SessionConfig *config) {
    bool was_runtime;
    Member *member;
    int r = add(reload, config, &member);

    if (r < 0)
        return log_error(r, "Failed to add session '%s': %m", config->name);
    was_runtime = member->runtime;
    if (was_runtime)
        take_from_client(member);
    member->config = *config;
    if (!member->session)
        begin(reload, member, false);
    else if (was_runtime || member->state == MEMBER_STOPPING)
        (void)roster_end(reload->roster, member, NEXT_BEGIN);
    else
        session_configure(member->session, config);
    return 0;
}

static void reopen(const Reload *reload, Member *member, const SessionConfig *config) {
    bool paused = member->state == MEMBER_PAUSED;

    member->config = *config;
    if (member_records(member))
        (void)roster_end(reload->roster, member, paused ? NEXT_BEGIN_PAUSED : NEXT_BEGIN);
    else if (member->state == MEMBER_FAILED || member_is_opening(member))
        begin(reload, member, paused);
}

static int apply_session(void *userdata, ConfigFate fate, const SessionConfig *old,
                         const SessionConfig *new) {
    const Reload *reload = userdata;
    Member *member = roster_find(reload->roster, new ? new->name : old->name);

    if (fate == CONFIG_ADDED)
        (void)apply_new(reload, new);
    if (!member)
        return 0;
    if (fate == CONFIG_LIMITED) {
        member->config = *new;
        if (member_records(member))
            session_configure(member->session, new);
    }
    if (fate == CONFIG_REOPENED)
        reopen(reload, member, new);
    if (fate == CONFIG_REMOVED && member->session)
        (void)roster_end(reload->roster, member, NEXT_NOTHING);
    else if (fate == CONFIG_REMOVED && member_is_opening(member))
        roster_abandon(reload->roster, member);
    return 0;
}

/* What is not there any more goes; what is not enabled is listed, for it may be begun by name. */
static void settle_rest(const Reload *reload, const Config *config) {
    for (size_t i = roster_count(reload->roster); i-- > 0;) {
        Member *member = roster_at(reload->roster, i);

        if (member->runtime || config_session(config, member->config.name))
            continue;
        if (member->session)
            (void)roster_end(reload->roster, member, NEXT_REMOVE);
        else
            roster_remove(reload->roster, member);
    }
    for (uint32_t i = 0; i < config->n_sessions; i++) {
        const SessionConfig *session = &config->sessions[i];
        Member *member = roster_find(reload->roster, session->name);

        if (!member && roster_add(reload->roster, session, false, NULL, &member) < 0)
            continue;
        if (!member_records(member) && !member->runtime)
            member->config = *session;
    }
}

/* One that goes on as it is records what it says already. */
static bool opens_anew(const Reload *reload, const SessionConfig *session) {
    const Config *old = *reload->config;
    ConfigFate fate = config_session_fate(config_session(old, session->name), session);
    const Member *member = roster_find(reload->roster, session->name);

    if (!session->enabled)
        return false;
    return fate == CONFIG_ADDED || fate == CONFIG_REOPENED || !member ||
           member->state == MEMBER_FAILED ||
           (member_records(member) &&
            plan_notes_left_out(sampler_notes(session_sampler(member->session))));
}

/* The number of problems that sessions would have on this host. */
static int check_host(const Reload *reload, const Config *config) {
    int problems = 0;

    for (uint32_t i = 0; i < config->n_sessions; i++) {
        const SessionConfig *session = &config->sessions[i];
        const Member *member = roster_find(reload->roster, session->name);
        bool is_open = member && member_records(member);
        CheckOptions options = sampler_check_options(
            reload->sampler, is_open ? session_sampler(member->session) : NULL);
        int r;

        if (!opens_anew(reload, session))
            continue;
        r = host_check_session(&options, config, session, on_problem, (void *)reload);
        if (r < 0)
            return r;
        problems += r;
    }
    return problems;
}

int reload_run(const Reload *reload) {
    _cleanup_(config_freep) Config *config = NULL;
    int r = config_load(reload->path, on_problem, (void *)reload, &config);

    sampler_sweep_while_waiting(reload->sampler, true);
    if (r == 0)
        r = check_host(reload, config);
    sampler_sweep_while_waiting(reload->sampler, false);
    if (r < 0)
        return log_struct(LOG_LEVEL_ERROR, r == -EINVAL ? -EIO : r,
                          LOG_FIELDS({"PROFD_EVENT", "reload-refused"}),
                          "Failed to read the configuration again, keeping the old one: %m");
    if (r > 0)
        return log_struct(LOG_LEVEL_ERROR, -EINVAL, LOG_FIELDS({"PROFD_EVENT", "reload-refused"}),
                          "The configuration has %d problem%s, keeping the old one", r,
                          r == 1 ? "" : "s");
    if (config_touches(*reload->config, config) & CONFIG_TOUCHES_RESTART)
        log_notice("Some of the keys that changed hold from the next start on");
    config_keep_until_restart(*reload->config, config);
    (void)config_diff(*reload->config, config, apply_session, (void *)reload);
    settle_rest(reload, config);
    store_configure(reload->store, config);
    config_free(*reload->config);
    *reload->config = TAKE_PTR(config);
    log_struct(LOG_LEVEL_NOTICE, 0, LOG_FIELDS({"PROFD_EVENT", "reloaded"}),
               "Reloaded the configuration");
    return 0;
}
