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
 * Which sessions there are: those of the configuration, and, where this recorder follows another
 * one, what clients had made of them. Nothing that Start() began outlives profd as a whole: the log
 * says so, when it stops or when it starts again.
 */

void daemon_tell_started(const Member *member) {
    bool has_segment = session_has_segment(member->session);
    size_t n_cpus = sampler_n_cpus(session_sampler(member->session));
    char cpus[32];

    snprintf(cpus, sizeof(cpus), "%zu", n_cpus);
    if (sampler_is_waiting(session_sampler(member->session))) {
        log_struct(LOG_LEVEL_INFO, 0,
                   LOG_FIELDS({"PROFD_EVENT", "started"}, {"PROFD_SESSION", member->config.name},
                              {"PROFD_SEGMENT", has_segment ? session_path(member->session) : ""},
                              {"PROFD_CPUS", cpus}),
                   "Recording %s for session '%s' begins when control group '%s' exists",
                   member->describe, member->config.name, member->config.cgroup);
        return;
    }
    log_struct(LOG_LEVEL_INFO, 0,
               LOG_FIELDS({"PROFD_EVENT", "started"}, {"PROFD_SESSION", member->config.name},
                          {"PROFD_SEGMENT", has_segment ? session_path(member->session) : ""},
                          {"PROFD_CPUS", cpus}),
               "Recording %s on %zu CPUs %s '%s'", member->describe, n_cpus,
               has_segment ? "into" : "for session",
               has_segment ? session_path(member->session) : member->config.name);
}

void daemon_tell_stopped(const Member *member) {
    SessionTotals totals = member_totals(member);
    char samples[32], lost[32];

    snprintf(samples, sizeof(samples), "%" PRIu64, totals.samples);
    snprintf(lost, sizeof(lost), "%" PRIu64, totals.lost);
    log_struct(LOG_LEVEL_NOTICE, 0,
               LOG_FIELDS({"PROFD_EVENT", "stopped"}, {"PROFD_SESSION", member->config.name},
                          {"PROFD_SAMPLES", samples}, {"PROFD_LOST", lost}),
               "Stopped session '%s', which took %" PRIu64 " samples and lost %" PRIu64,
               member->config.name, totals.samples, totals.lost);
}

/* Logs that a client changed the session, or that it ended. */
static void tell_change(const Daemon *daemon, const char *event, const Member *member,
                        const char *text) {
    if (strcmp(event, "stopped") == 0)
        daemon_tell_stopped(member);
    else if (strcmp(event, "started") == 0 && daemon->is_ready)
        daemon_tell_started(member);
    else if (strcmp(event, "failed") == 0)
        log_struct(LOG_LEVEL_ERROR, 0,
                   LOG_FIELDS({"PROFD_EVENT", event}, {"PROFD_SESSION", member->config.name}),
                   "Session '%s' does not record, profd tries it again until it does",
                   member->config.name);
    else if (strcmp(event, "paused") == 0 || strcmp(event, "resumed") == 0)
        log_struct(LOG_LEVEL_NOTICE, 0,
                   LOG_FIELDS({"PROFD_EVENT", event}, {"PROFD_SESSION", member->config.name}),
                   "Session '%s' %s: %s", member->config.name, event, text);
}

static void on_event(void *userdata, const char *event, const Member *member, const char *text) {
    Daemon *daemon = userdata;

    tell_change(daemon, event, member, text);
    monitor_publish(daemon->monitor,
                    &(MonitorEvent){.event = event, .session = member->config.name, .text = text});
    if (daemon->is_ready && !daemon->stopping)
        notify_status(daemon->roster, clock_monotonic_ns(), daemon->is_outdated);
    if (!daemon->stopping && (strcmp(event, "stopped") == 0 || strcmp(event, "started") == 0))
        daemon_remember(daemon);
}

static int on_retry(void *userdata, Member *member) {
    Daemon *daemon = userdata;
    int r = daemon_end_sweep(daemon);

    /* That it fails again concerns nobody but itself. */
    if (r == 0)
        (void)roster_retry(daemon->roster, member);
    return r;
}

static int on_look(void *userdata) {
    return daemon_look(userdata);
}

static int new_roster(Daemon *daemon) {
    return roster_new(&(RosterOptions){.loop = daemon->loop,
                                       .host = {.sampler = daemon->sampler},
                                       .drain = daemon_drain,
                                       .on_retry = on_retry,
                                       .on_event = on_event,
                                       .on_look = on_look,
                                       .userdata = daemon},
                      &daemon->roster);
}

/* By whether the keeper has events open, or had recorders before us. */
static bool follows_another(const Daemon *daemon) {
    const KeeperStatus *status = &daemon->keeper;

    return status->n_events > 0 || status->restarts > 0 || status->upgraded;
}

static void tell_ended(void *userdata _unused_, const RuntimeEntry *entry) {
    if (entry->runtime)
        log_notice("Session '%s', which was begun at runtime, ended with the profd before this one",
                   entry->name);
}

void daemon_settle_group(Daemon *daemon, SessionConfig *config) {
    char path[sizeof(config->cgroup)];

    if (!config->cgroup[0] || sampler_group_exists(daemon->sampler, config->cgroup))
        return;
    text_unescape(config->cgroup, path);
    if (strcmp(path, config->cgroup) != 0 && sampler_group_exists(daemon->sampler, path))
        memcpy(config->cgroup, path, sizeof(path));
}

/* The members as they were; those of the configuration are there already. */
static void restore_runtime(Daemon *daemon, const RuntimeEntry *entry) {
    ConfigSetting settings[64];
    SessionConfig config;
    ConfigFault fault = {};
    Member *member = NULL;
    const char *key;
    json_t *value;
    size_t n = 0;
    int r;

    json_object_foreach(entry->settings, key,
                        value) if (n < ARRAY_SIZE(settings) && json_is_string(value))
        settings[n++] = (ConfigSetting){.key = key, .value = json_string_value(value)};
    r = config_make_session(daemon->config, entry->name, settings, n, &config, &fault);
    if (r == 0) {
        daemon_settle_group(daemon, &config);
        r = roster_add(daemon->roster, &config, true, entry->settings, &member);
    }
    if (r < 0) {
        log_warning(r, "Session '%s', which was begun at runtime, cannot go on: %m", entry->name);
        return;
    }
    member->state = entry->state;
    member->stop_at_ns = entry->stop_at_ns;
    member->since_real_ns = entry->since_real_ns;
    member->state_real_ns = entry->state_real_ns;
}

static void restore(void *userdata, const RuntimeEntry *entry) {
    Daemon *daemon = userdata;
    Member *member = roster_find(daemon->roster, entry->name);

    if (!member && entry->runtime)
        restore_runtime(daemon, entry);
    if (!member || entry->runtime)
        return;
    member->state = entry->state;
    member->stop_at_ns = entry->stop_at_ns;
    member->since_real_ns = entry->since_real_ns;
    member->state_real_ns = entry->state_real_ns;
}

static int add_configured(Daemon *daemon) {
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < daemon->config->n_sessions; i++) {
        const SessionConfig *config = &daemon->config->sessions[i];
        Member *member;

        r = roster_add(daemon->roster, config, false, NULL, &member);
        /* The state that it is to get. */
        if (r == 0)
            member->state = config->enabled ? MEMBER_ACTIVE : MEMBER_INACTIVE;
    }
    return r;
}

/* What clients made of them, or what is to be told of it. */
static void take_over(Daemon *daemon) {
    const char *folder = daemon->options.runtime;
    bool follows = follows_another(daemon);
    RuntimeLog log = {};
    int r = runtime_load(folder, follows ? restore : tell_ended, daemon, &log);

    if (r == -EBADMSG)
        log_warning(r, "What '%s' keeps of sessions begun at runtime makes no sense, ignoring it",
                    folder);
    if (!follows) {
        runtime_forget(folder);
        return;
    }
    daemon->log = log;
    if (log.is_set)
        log_set_level(log.level);
}

static int open_member(Daemon *daemon, Member *member) {
    if (member->state != MEMBER_INACTIVE && member->state != MEMBER_STOPPING)
        return roster_open(daemon->roster, member, member->state == MEMBER_PAUSED);
    member->state = MEMBER_INACTIVE;
    return 0;
}

static int begin_member(Daemon *daemon, Member *member) {
    bool paused = member->state == MEMBER_PAUSED;
    uint64_t since_ns = member->since_real_ns, state_ns = member->state_real_ns;
    int r;

    if (!member->session)
        return 0;
    r = roster_begin(daemon->roster, member, paused);
    if (r == 0)
        r = roster_await(daemon->roster, member);
    if (r == 0 && since_ns > 0)
        member->since_real_ns = since_ns;
    if (r == 0 && state_ns > 0)
        member->state_real_ns = state_ns;
    if (r == 0 && member->stop_at_ns > 0) {
        uint64_t now = clock_ns(CLOCK_BOOTTIME), left = MAX(member->stop_at_ns, now + 1) - now;

        r = roster_stop_after(daemon->roster, member, left);
    }
    return r;
}

/* A session that cannot begin has failed and is tried again; it ends profd only where no session
 * ever can. */
static int each_member(Daemon *daemon, int (*act)(Daemon *daemon, Member *member)) {
    int r = 0;

    for (size_t i = 0; r != -EPIPE && i < roster_count(daemon->roster); i++)
        r = act(daemon, roster_at(daemon->roster, i));
    return r == -EPIPE ? r : 0;
}

int daemon_open_sessions(Daemon *daemon) {
    int r = new_roster(daemon);

    if (r == 0)
        r = add_configured(daemon);
    if (r < 0)
        return r;
    take_over(daemon);
    r = each_member(daemon, open_member);
    sampler_forget_rest(daemon->sampler);
    return r;
}

int daemon_begin_sessions(Daemon *daemon) {
    SessionHost host = {daemon->sampler, daemon->tracker, daemon->store, &daemon->rate};
    int r;

    roster_set_host(daemon->roster, &host);
    r = each_member(daemon, begin_member);
    daemon_remember(daemon);
    return r;
}

static bool has_runtime_sessions(const Daemon *daemon) {
    for (size_t i = 0; i < roster_count(daemon->roster); i++)
        if (roster_at(daemon->roster, i)->runtime)
            return true;
    return false;
}

void daemon_remember(Daemon *daemon) {
    static LogRate rate = {.interval_ns = 60 * NS_PER_SECOND, .burst = 1};
    int r = runtime_save(daemon->options.runtime, daemon->roster, &daemon->log);

    if (r < 0 && has_runtime_sessions(daemon))
        log_limited(&rate, LOG_LEVEL_WARNING, r,
                    "Failed to keep what sessions there are in '%s', so those that were begun at "
                    "runtime end with this recorder: %m",
                    daemon->options.runtime);
}

void daemon_forget(Daemon *daemon) {
    for (size_t i = 0; i < roster_count(daemon->roster); i++) {
        const Member *member = roster_at(daemon->roster, i);

        if (member->runtime && member_records(member))
            log_notice("Session '%s' was begun at runtime and ends with profd, begin it again with "
                       "profctl start",
                       member->config.name);
    }
    runtime_forget(daemon->options.runtime);
}
