/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "recorder/config-reload.h"
#include "recorder/daemon-private.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/notify-socket.h"

/*
 * Takes a reload through its steps. One thread reads the files, the thread that opens sessions
 * tries their events, and the main thread does the rest, so that a disk or a keeper that is slow
 * holds up no sample. One reload runs at a time; all that are asked for meanwhile become the next
 * one, which reads the files after the last of them was asked for.
 */

struct Reloading {
    Daemon *daemon;
    Reload reload;
    unsigned n_ends; /* whoever waits for it */
    bool is_done;
    int error;
};

static int daemon_reload_new(Daemon *daemon, Reloading **ret) {
    Reloading *reloading = calloc(1, sizeof(*reloading));

    if (!reloading)
        return -ENOMEM;
    *reloading = (Reloading){.daemon = daemon,
                             .n_ends = 1,
                             .reload = {.path = daemon->options.config_path,
                                        .sessions = daemon->sessions,
                                        .sampler = daemon->sampler,
                                        .store = daemon->store,
                                        .config = &daemon->config}};
    *ret = reloading;
    return 0;
}

void daemon_reload_release(void *userdata) {
    Reloading *reloading = userdata;

    if (--reloading->n_ends > 0)
        return;
    reload_done(&reloading->reload);
    free(reloading);
}

bool daemon_reload_is_done(const Reloading *reloading, int *ret_error, json_t **ret_problems) {
    if (!reloading->is_done ||
        (reloading->error == 0 && session_table_is_changing(reloading->daemon->sessions)))
        return false;
    *ret_error = reloading->error;
    *ret_problems = reloading->reload.problems;
    return true;
}

/* Takes over new settings that concern neither sessions nor the store. */
static int daemon_reload_take_config(Daemon *daemon) {
    byte_rate_set(&daemon->rate, daemon->config->max_bytes_per_sec, clock_monotonic_ns());
    binaries_configure(daemon->binaries, daemon->config->binaries_max_use_bytes);
    monitor_publish(daemon->monitor,
                    &(MonitorEvent){.event = "reloaded", .text = "the configuration"});
    daemon_remember(daemon);
    return daemon_add_flush_timer(daemon);
}

static void daemon_reload_apply(Reloading *reloading) {
    Daemon *daemon = reloading->daemon;
    int r = daemon_end_sweep(daemon), k = 0;

    if (r == 0)
        r = reload_apply(&reloading->reload);
    if (r == 0)
        k = daemon_reload_take_config(daemon);
    daemon->is_outdated = r < 0;
    daemon_update_status(daemon, clock_monotonic_ns());
    if (k == 0)
        k = daemon_sweep_soon(daemon);
    reloading->error = r < 0 ? r : k;
}

static void daemon_reload_begin_next(Daemon *daemon);

static void daemon_reload_end(Reloading *reloading) {
    Daemon *daemon = reloading->daemon;

    if (!daemon->stopping)
        daemon_reload_apply(reloading);
    reloading->is_done = true;
    daemon->reload = NULL;
    if (daemon->next_reload)
        daemon_reload_begin_next(daemon);
    else if (daemon->is_ready && !daemon->stopping)
        notify_socket_ready();
    if (!daemon->stopping)
        waits_check(daemon->waits);
    daemon_reload_release(reloading);
}

static void daemon_reload_check(void *userdata) {
    reload_check(&((Reloading *)userdata)->reload);
}

static void daemon_reload_on_checked(void *userdata) {
    daemon_reload_end(userdata);
}

static void daemon_reload_read(void *userdata) {
    reload_read(&((Reloading *)userdata)->reload);
}

static void daemon_reload_on_read(void *userdata) {
    Reloading *reloading = userdata;
    Daemon *daemon = reloading->daemon;
    int r;

    if (daemon->stopping || !reload_prepare(&reloading->reload)) {
        daemon_reload_end(reloading);
        return;
    }
    r = housekeeper_add(daemon->opener,
                        &(WorkerJob){daemon_reload_check, daemon_reload_on_checked, reloading},
                        true);
    if (r < 0) {
        reloading->reload.error = r;
        daemon_reload_end(reloading);
    }
}

static void daemon_reload_begin_next(Daemon *daemon) {
    Reloading *reloading = TAKE_PTR(daemon->next_reload);
    int r;

    daemon->reload = reloading;
    r = daemon->stopping
            ? -ECANCELED
            : worker_add(daemon->reader,
                         &(WorkerJob){daemon_reload_read, daemon_reload_on_read, reloading}, 1);
    if (r < 0) {
        reloading->reload.error = r;
        daemon_reload_end(reloading);
    }
}

int daemon_reload(Daemon *daemon, Reloading **ret) {
    int r = daemon->next_reload ? 0 : daemon_reload_new(daemon, &daemon->next_reload);

    if (r < 0)
        return r;
    if (daemon->is_ready)
        notify_socket_reloading();
    *ret = daemon->next_reload;
    (*ret)->n_ends++;
    if (!daemon->reload)
        daemon_reload_begin_next(daemon);
    return 0;
}
