/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recorder/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>

#include "recorder/daemon-private.h"
#include "store/disk/disk.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/notify-socket.h"

/* Runs the recorder: what wakes the main thread (timers, signals, the keeper, clients), how it
 * becomes ready, and how it ends: it takes what the rings still hold and ends the sessions. */

/* Longer than this beyond the flush interval means that the sweep hangs. */
#define SWEEP_MAX_NS (30 * NS_PER_SECOND)
/* How long profd waits for the last build ids when it stops. */
#define BUILD_IDS_MAX_NS (1000 * NS_PER_MS)

static int daemon_run_on_give_back(void *userdata) {
    Daemon *daemon = userdata;
    uint64_t n;

    return read(daemon->written_fd, &n, sizeof(n)) == sizeof(n) ? daemon_check_writers(daemon) : 0;
}

static int daemon_run_on_opened_check(void *userdata) {
    return daemon_check_writers(userdata);
}

static int daemon_run_end(Daemon *daemon) {
    loop_stop(daemon->loop);
    return 0;
}

/* A handover to another recorder must not send STOPPING=1; only the end of the service does. */
static int daemon_run_on_stop(void *userdata) {
    notify_socket_stopping();
    return daemon_run_end(userdata);
}

static int daemon_run_on_leave(void *userdata) {
    Daemon *daemon = userdata;

    log_notice("Handing over to another recorder, the rings are kept");
    daemon->leaving = true;
    return daemon_run_end(daemon);
}

static int daemon_run_on_keeper_gone(void *userdata) {
    log_struct(LOG_LEVEL_ERROR, 0, LOG_FIELDS({"PROFD_EVENT", "keeper-gone"}),
               "The keeper has ended, finishing the segments");
    return daemon_run_end(userdata);
}

static int daemon_run_on_reload(void *userdata) {
    Reloading *reloading;
    int r = daemon_reload(userdata, &reloading);

    if (r < 0)
        return log_error(r, "Failed to read the configuration again: %m"), 0;
    daemon_reload_release(reloading);
    return 0;
}

static void daemon_run_log_reach(const Daemon *daemon) {
    StoreUse use = store_use(daemon->store);

    if (use.reach_ns == 0)
        log_info("The store '%s' may take %" PRIu64 " MiB, how far back that reaches is known "
                 "after the first segment",
                 daemon->store_path, use.limit_bytes >> 20);
    else
        log_info("The store '%s' holds %" PRIu64 " of %" PRIu64 " MiB and reaches back about "
                 "%" PRIu64 " h when it is full",
                 daemon->store_path, use.used_bytes >> 20, use.limit_bytes >> 20,
                 (uint64_t)(use.reach_ns / (3600 * NS_PER_SECOND)));
}

/* The first pass over /proc is complete: from now on side-band reports what changes. */
int daemon_on_ready(void *userdata) {
    Daemon *daemon = userdata;
    int r = keeper_ready(daemon->options.keeper);
    SessionEntry *entry;

    if (r < 0)
        return log_error(r, "Failed to report to the keeper that recording has begun: %m");
    daemon->is_ready = true;
    daemon_sweep_early(daemon);
    daemon_run_log_reach(daemon);
    for (size_t at = 0; (entry = session_table_next(daemon->sessions, &at));)
        daemon_log_started(entry);
    /* Makes the running sweep update the status when it ends. */
    daemon->sweep.status_ns = 0;
    notify_socket_ready();
    return 0;
}

/* Whether sweeps still complete. Before the first sweep there is nothing that could hang. */
static bool daemon_run_is_alive(void *userdata) {
    Daemon *daemon = userdata;
    uint64_t limit_ns = daemon->config->flush_interval_ns + SWEEP_MAX_NS;

    return daemon->sweep.end_ns == 0 || clock_monotonic_ns() - daemon->sweep.end_ns < limit_ns;
}

static int daemon_run_add_signals(Daemon *daemon) {
    /* clang-format off */
    const struct { int number; LoopCallback callback; } rows[] = {
        { SIGTERM, daemon_run_on_stop   },
        { SIGINT,  daemon_run_on_stop   },
        { SIGUSR1, daemon_run_on_leave  },
        { SIGHUP,  daemon_run_on_reload },
    };
    /* clang-format on */
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rows); i++)
        r = loop_add_signal(daemon->loop, rows[i].number, rows[i].callback, daemon, NULL);
    return r;
}

int daemon_add_sources(Daemon *daemon) {
    int r = loop_add_deferred(daemon->loop, daemon_sweep, daemon, &daemon->sweep_source);

    if (r == 0)
        r = loop_add_deferred(daemon->loop, daemon_sweep_soon, daemon, &daemon->late_source);
    if (r == 0)
        r = loop_add_deferred(daemon->loop, daemon_follow_sweep, daemon, &daemon->follow_source);
    if (r == 0)
        r = loop_add_deferred(daemon->loop, daemon_run_on_opened_check, daemon,
                              &daemon->opened_source);
    if (r == 0)
        r = daemon_add_flush_timer(daemon);
    if (r == 0)
        r = loop_add_readable(daemon->loop, keeper_fd(daemon->options.keeper),
                              daemon_run_on_keeper_gone, daemon, NULL);
    if (r == 0)
        r = loop_add_readable(daemon->loop, daemon->written_fd, daemon_run_on_give_back, daemon,
                              NULL);
    if (r == 0)
        r = daemon_run_add_signals(daemon);
    if (r == 0)
        r = notify_new(daemon->loop, daemon_run_is_alive, daemon, &daemon->notify);
    if (r == 0)
        r = sampler_watch(daemon->sampler, daemon->loop, daemon_sweep_soon, daemon_on_cpus, daemon);
    return r < 0 ? log_error(r, "Failed to set up the main loop: %m") : 0;
}

/* End all sessions at once; each one's loss is known when its writer has ended. */
static void daemon_run_end_sessions(Daemon *daemon) {
    SessionEntry *entry;

    for (size_t at = 0; (entry = session_table_next(daemon->sessions, &at));) {
        entry->state = SESSION_STOPPING;
        session_end(entry->session);
    }
    for (size_t i = 0; i < session_table_count(daemon->sessions); i++) {
        entry = session_table_at(daemon->sessions, i);
        if (!entry->session)
            continue;
        session_wait(entry->session);
        daemon_log_stopped(entry);
    }
}

static int daemon_run_take_rest(Daemon *daemon) {
    int r = daemon_drain(daemon);

    if (r < 0)
        return log_error(r, "Failed to take the last samples from the rings: %m");
    if (history_waits_since(tracker_history(daemon->tracker)) == UINT64_MAX)
        return 0;
    r = tracker_await(daemon->tracker, BUILD_IDS_MAX_NS);
    if (r < 0)
        return log_error(r, "Failed to wait for the last build ids: %m");
    r = daemon_drain(daemon);
    return r < 0 ? log_error(r, "Failed to take what came while profd stopped: %m") : 0;
}

static int daemon_run_stop(Daemon *daemon) {
    SessionEntry *entry;
    int r;

    for (size_t at = 0; !daemon->leaving && (entry = session_table_next(daemon->sessions, &at));)
        session_leave(entry->session, PD_GAP_DOWN);
    r = daemon_run_take_rest(daemon);
    if (!daemon->leaving)
        daemon_run_end_sessions(daemon);
    return r;
}

int daemon_run(Daemon *daemon) {
    int r, k;

    /* From here on the main thread must not touch a disk; helper threads do. */
    (void)disk_forbid(true);
    r = loop_run(daemon->loop);
    (void)disk_forbid(false);
    if (r < 0)
        log_error(r, "The recorder ends because %s() failed: %m", loop_failed_in(daemon->loop));
    daemon->stopping = true;
    daemon->control = control_free(daemon->control);
    if (!daemon->leaving)
        daemon_forget(daemon);
    k = daemon_run_stop(daemon);
    return r < 0 ? r : k;
}
