/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "recorder/daemon-private.h"
#include "session/runtime.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

/*
 * Manages which sessions exist: those of the configuration and, after another recorder, the changes
 * that clients made to them. A session that Start() began never outlives profd: the log says so
 * when profd stops, or when it starts again after a crash.
 */

void daemon_log_started(const SessionEntry *entry) {
    bool has_segment = session_has_segment(entry->session);
    size_t n_cpus = sampler_n_cpus(session_sampler(entry->session));
    char cpus[32];

    snprintf(cpus, sizeof(cpus), "%zu", n_cpus);
    if (sampler_is_waiting(session_sampler(entry->session))) {
        log_struct(LOG_LEVEL_INFO, 0,
                   LOG_FIELDS({"PROFD_EVENT", "started"}, {"PROFD_SESSION", entry->config.name},
                              {"PROFD_SEGMENT", has_segment ? session_path(entry->session) : ""},
                              {"PROFD_CPUS", cpus}),
                   "Recording %s for session '%s' begins when control group '%s' exists",
                   entry->describe, entry->config.name, entry->config.cgroup);
        return;
    }
    log_struct(LOG_LEVEL_INFO, 0,
               LOG_FIELDS({"PROFD_EVENT", "started"}, {"PROFD_SESSION", entry->config.name},
                          {"PROFD_SEGMENT", has_segment ? session_path(entry->session) : ""},
                          {"PROFD_CPUS", cpus}),
               "Recording %s on %zu CPUs %s '%s'", entry->describe, n_cpus,
               has_segment ? "into" : "for session",
               has_segment ? session_path(entry->session) : entry->config.name);
}

void daemon_log_stopped(const SessionEntry *entry) {
    SessionTotals totals = session_entry_totals(entry);
    char samples[32], lost[32];

    snprintf(samples, sizeof(samples), "%" PRIu64, totals.samples);
    snprintf(lost, sizeof(lost), "%" PRIu64, totals.lost);
    log_struct(LOG_LEVEL_NOTICE, 0,
               LOG_FIELDS({"PROFD_EVENT", "stopped"}, {"PROFD_SESSION", entry->config.name},
                          {"PROFD_SAMPLES", samples}, {"PROFD_LOST", lost}),
               "Stopped session '%s', which took %" PRIu64 " samples, %s lost", entry->config.name,
               totals.samples, totals.lost > 0 ? lost : "none");
}

/* Logs that a client changed the session, or that it ended. */
static void daemon_session_log_change(const Daemon *daemon, const char *event,
                                      const SessionEntry *entry, const char *text) {
    if (strcmp(event, "stopped") == 0)
        daemon_log_stopped(entry);
    else if (strcmp(event, "started") == 0 && daemon->is_ready)
        daemon_log_started(entry);
    else if (strcmp(event, "failed") == 0)
        log_struct(LOG_LEVEL_ERROR, 0,
                   LOG_FIELDS({"PROFD_EVENT", event}, {"PROFD_SESSION", entry->config.name}),
                   "Session '%s' does not record%s", entry->config.name,
                   /* One that Start() begins is removed when that fails. */
                   entry->runtime ? "" : ", profd tries it again until it does");
    else if (strcmp(event, "paused") == 0 || strcmp(event, "resumed") == 0)
        log_struct(LOG_LEVEL_NOTICE, 0,
                   LOG_FIELDS({"PROFD_EVENT", event}, {"PROFD_SESSION", entry->config.name}),
                   "Session '%s' %s: %s", entry->config.name, event, text);
}

static void daemon_session_on_event(void *userdata, const char *event, const SessionEntry *entry,
                                    const char *text) {
    Daemon *daemon = userdata;

    daemon_session_log_change(daemon, event, entry, text);
    monitor_publish(daemon->monitor,
                    &(MonitorEvent){.event = event, .session = entry->config.name, .text = text});
    if (daemon->is_ready && !daemon->stopping)
        notify_status(daemon->sessions, clock_monotonic_ns(), daemon->is_outdated);
    if (!daemon->stopping && (strcmp(event, "stopped") == 0 || strcmp(event, "started") == 0))
        daemon_remember(daemon);
}

static int daemon_session_on_retry(void *userdata, SessionEntry *entry) {
    Daemon *daemon = userdata;
    int r = daemon_end_sweep(daemon);

    /* A session that fails again keeps its error in its entry; the others go on. */
    if (r == 0)
        (void)session_table_retry(daemon->sessions, entry);
    return r;
}

static int daemon_session_on_check(void *userdata) {
    return daemon_check_writers(userdata);
}

static int daemon_session_new_session_table(Daemon *daemon) {
    return session_table_new(&(SessionTableOptions){.loop = daemon->loop,
                                                    .host = {.sampler = daemon->sampler},
                                                    .drain = daemon_drain,
                                                    .on_retry = daemon_session_on_retry,
                                                    .on_event = daemon_session_on_event,
                                                    .on_check = daemon_session_on_check,
                                                    .userdata = daemon},
                             &daemon->sessions);
}

/* True when the keeper has events open or started recorders before this one. */
static bool daemon_session_follows_another(const Daemon *daemon) {
    const KeeperStatus *status = &daemon->keeper;

    return status->n_events > 0 || status->restarts > 0 || status->upgraded;
}

static void daemon_session_log_ended(void *userdata _unused_, const SavedSession *saved) {
    if (saved->runtime)
        log_notice("Session '%s', which 'profctl start' began, ended with the previous profd",
                   saved->name);
}

void daemon_settle_group(Daemon *daemon, SessionConfig *config) {
    char path[sizeof(config->cgroup)];

    if (!config->cgroup[0] || sampler_group_exists(daemon->sampler, config->cgroup))
        return;
    text_unescape(config->cgroup, path);
    if (strcmp(path, config->cgroup) != 0 && sampler_group_exists(daemon->sampler, path))
        memcpy(config->cgroup, path, sizeof(path));
}

/* A session that had failed, or waited, is in its state since it is open. */
static void daemon_session_restore_state(SessionEntry *entry, const SavedSession *saved) {
    bool was_settled = saved->state == SESSION_ACTIVE || saved->state == SESSION_PAUSED ||
                       saved->state == SESSION_INACTIVE;

    entry->state = saved->state;
    entry->stop_at_ns = saved->stop_at_ns;
    entry->since_real_ns = saved->since_real_ns;
    entry->state_real_ns = was_settled ? saved->state_real_ns : 0;
}

/* Restores the saved entries. The configured sessions are in the table already. */
static void daemon_session_restore_runtime(Daemon *daemon, const SavedSession *saved) {
    ConfigSetting settings[64];
    SessionConfig config;
    ConfigFault fault = {};
    SessionEntry *entry = NULL;
    const char *key;
    json_t *value;
    size_t n = 0;
    int r;

    json_object_foreach(saved->settings, key,
                        value) if (n < ARRAY_SIZE(settings) && json_is_string(value))
        settings[n++] = (ConfigSetting){.key = key, .value = json_string_value(value)};
    r = config_make_session(daemon->config, saved->name, settings, n, &config, &fault);
    if (r == 0) {
        daemon_settle_group(daemon, &config);
        r = session_table_add(daemon->sessions, &config, true, saved->settings, &entry);
    }
    if (r < 0) {
        log_warning(r, "Session '%s', which 'profctl start' began, cannot go on: %m", saved->name);
        return;
    }
    daemon_session_restore_state(entry, saved);
}

static void daemon_session_restore(void *userdata, const SavedSession *saved) {
    Daemon *daemon = userdata;
    SessionEntry *entry = session_table_find(daemon->sessions, saved->name);

    if (!entry && saved->runtime)
        daemon_session_restore_runtime(daemon, saved);
    if (!entry || saved->runtime)
        return;
    /* Enabled= was edited since, and says more than the state before. */
    if (saved->enabled >= 0 && (saved->enabled > 0) != entry->config.enabled)
        return;
    daemon_session_restore_state(entry, saved);
}

static int daemon_session_add_configured(Daemon *daemon) {
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < daemon->config->n_sessions; i++) {
        const SessionConfig *config = &daemon->config->sessions[i];
        SessionEntry *entry;

        r = session_table_add(daemon->sessions, config, false, NULL, &entry);
        /* The state that the session shall reach once it is open. */
        if (r == 0)
            entry->state = config->enabled ? SESSION_ACTIVE : SESSION_INACTIVE;
    }
    return r;
}

/* Restores what clients had changed, or logs which sessions were lost. */
static void daemon_session_take_over(Daemon *daemon) {
    const char *folder = daemon->options.runtime;
    bool follows = daemon_session_follows_another(daemon);
    RuntimeLog log = {};
    int r = runtime_load(folder, follows ? daemon_session_restore : daemon_session_log_ended,
                         daemon, &log);

    if (r == -EBADMSG)
        log_warning(
            r, "The list of sessions begun by 'profctl start' in '%s' makes no sense, ignoring it",
            folder);
    if (!follows) {
        runtime_forget(folder);
        return;
    }
    daemon->log = log;
    if (log.is_set)
        log_set_level(log.level);
}

static int daemon_session_open(Daemon *daemon, SessionEntry *entry) {
    if (entry->state != SESSION_INACTIVE && entry->state != SESSION_STOPPING)
        return session_table_open(daemon->sessions, entry, entry->state == SESSION_PAUSED);
    entry->state = SESSION_INACTIVE;
    return 0;
}

static int daemon_session_begin(Daemon *daemon, SessionEntry *entry) {
    bool paused = entry->state == SESSION_PAUSED;
    uint64_t since_ns = entry->since_real_ns, state_ns = entry->state_real_ns;
    int r;

    if (!entry->session)
        return 0;
    r = session_table_begin(daemon->sessions, entry, paused);
    if (r == 0)
        r = session_table_await(daemon->sessions, entry);
    if (r == 0 && since_ns > 0)
        entry->since_real_ns = since_ns;
    if (r == 0 && state_ns > 0)
        entry->state_real_ns = state_ns;
    if (r == 0 && entry->stop_at_ns > 0) {
        uint64_t now = clock_ns(CLOCK_BOOTTIME), left = MAX(entry->stop_at_ns, now + 1) - now;

        r = session_table_stop_after(daemon->sessions, entry, left);
    }
    return r;
}

/* A session that cannot begin is marked as failed and retried. profd exits only when no session can
 * ever begin. */
static int daemon_session_each(Daemon *daemon, int (*act)(Daemon *daemon, SessionEntry *entry)) {
    int r = 0;

    for (size_t i = 0; r != -EPIPE && i < session_table_count(daemon->sessions); i++)
        r = act(daemon, session_table_at(daemon->sessions, i));
    return r == -EPIPE ? r : 0;
}

int daemon_open_sessions(Daemon *daemon) {
    int r = daemon_session_new_session_table(daemon);

    if (r == 0)
        r = daemon_session_add_configured(daemon);
    if (r < 0)
        return r;
    daemon_session_take_over(daemon);
    r = daemon_session_each(daemon, daemon_session_open);
    sampler_forget_rest(daemon->sampler);
    return r;
}

int daemon_begin_sessions(Daemon *daemon) {
    SessionHost host = {daemon->sampler, daemon->tracker,  daemon->store,
                        &daemon->rate,   daemon->unwinder, binaries_watch(daemon->binaries)};
    int r;

    session_table_set_host(daemon->sessions, &host);
    r = daemon_session_each(daemon, daemon_session_begin);
    daemon_remember(daemon);
    return r;
}

static bool daemon_session_has_runtime_sessions(const Daemon *daemon) {
    for (size_t i = 0; i < session_table_count(daemon->sessions); i++)
        if (session_table_at(daemon->sessions, i)->runtime)
            return true;
    return false;
}

void daemon_remember(Daemon *daemon) {
    static LogRate rate = {.interval_ns = 60 * NS_PER_SECOND, .burst = 1};
    int r = runtime_save(daemon->options.runtime, daemon->sessions, &daemon->log);

    if (r < 0 && daemon_session_has_runtime_sessions(daemon))
        log_limited(&rate, LOG_LEVEL_WARNING, r,
                    "Failed to save the list of sessions in '%s', so sessions begun by 'profctl "
                    "start' end with this recorder: %m",
                    daemon->options.runtime);
}

void daemon_forget(Daemon *daemon) {
    for (size_t i = 0; i < session_table_count(daemon->sessions); i++) {
        const SessionEntry *entry = session_table_at(daemon->sessions, i);

        if (entry->runtime && session_entry_records(entry))
            log_notice("Session '%s' was begun by 'profctl start' and ends with profd; 'profctl "
                       "start' begins it again",
                       entry->config.name);
    }
    runtime_forget(daemon->options.runtime);
}
