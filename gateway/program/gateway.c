/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program/gateway.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "program/gateway-private.h"
#include "program/gateway-read.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"
#include "util/notify-socket.h"

/*
 * Builds the gateway from its configuration, runs the loop, and takes it apart. Each part works
 * without the others: engines may be away, profd may be away, and the listener answers from profd.
 * What a destination has sent is in its state on disk, so a part that is made anew loses nothing.
 */

static int gateway_on_stop(void *userdata) {
    Gateway *gateway = userdata;

    notify_socket_stopping();
    loop_stop(gateway->loop);
    return 0;
}

static int gateway_on_reload(void *userdata) {
    Gateway *gateway = userdata;
    int r;

    notify_socket_reloading();
    r = gateway_reload(gateway);
    /* Neither the new nor the old configuration works any more: the next start tries again. */
    if (!gateway->source)
        return r;
    gateway->is_outdated = r < 0;
    gateway_report(gateway);
    notify_socket_ready();
    return 0;
}

static int gateway_add_signals(Gateway *gateway) {
    /* clang-format off */
    const struct { int number; LoopCallback callback; } rows[] = {
        { SIGTERM, gateway_on_stop   },
        { SIGINT,  gateway_on_stop   },
        { SIGHUP,  gateway_on_reload },
    };
    /* clang-format on */
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rows); i++)
        r = loop_add_signal(gateway->loop, rows[i].number, rows[i].callback, gateway, NULL);
    return r;
}

/* Two gateways would send everything twice. */
static int gateway_lock_state(Gateway *gateway) {
    const char *folder = gateway->options.state;
    char path[4096];
    int r = file_make_folders(folder, 0750);

    if (r == 0 && snprintf(path, sizeof(path), "%s/.lock", folder) >= (int)sizeof(path))
        r = -ENAMETOOLONG;
    if (r == 0)
        gateway->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (r == 0 && gateway->lock_fd < 0)
        r = -errno;
    if (r == 0 && flock(gateway->lock_fd, LOCK_EX | LOCK_NB) < 0)
        r = -errno;
    /* What is in the folders is of the other one then. */
    if (r < 0)
        closep(&gateway->lock_fd);
    if (r == -EWOULDBLOCK)
        return log_error(r, "Another profd-gateway uses '%s', name another folder with --state",
                         folder);
    return r < 0 ? log_error(r, "Failed to open the folder of positions '%s': %m", folder) : 0;
}

/* That of the service manager, else one beside the positions. Without one, tables of symbols are
 * made again and again, which costs time alone. */
static void gateway_find_cache(Gateway *gateway) {
    const char *given = getenv("CACHE_DIRECTORY"), *folder = given ?: gateway->options.state;
    size_t size = sizeof(gateway->cache);
    int n = snprintf(gateway->cache, size, "%s%s", folder, given ? "" : "/cache");
    int r = n < 0 || (size_t)n >= size ? -ENAMETOOLONG : file_make_folders(gateway->cache, 0700);

    if (r == 0)
        return;
    log_warning(r, "Failed to make the folder '%s' for tables of symbols, going on without: %m",
                gateway->cache);
    *gateway->cache = '\0';
}

static int gateway_prepare(Gateway *gateway) {
    int r = gateway_lock_state(gateway);

    if (r == 0) {
        mode_t mask = umask(0022);

        r = file_make_folders(gateway->options.runtime, 0755);
        (void)umask(mask);
        if (r < 0)
            log_error(r, "Failed to make the runtime folder '%s': %m", gateway->options.runtime);
    }
    if (r < 0)
        return r;
    gateway_find_cache(gateway);
    r = loop_new(&gateway->loop);
    if (r == 0)
        r = gateway_add_signals(gateway);
    if (r == 0)
        r = transport_new(gateway->loop, &gateway->transport);
    return r < 0 ? log_error(r, "Failed to set up the main loop: %m") : 0;
}

int gateway_new(const GatewayOptions *options, Gateway **ret) {
    _cleanup_(gateway_freep) Gateway *gateway = calloc(1, sizeof(*gateway));
    int r;

    if (!gateway)
        return log_error(-ENOMEM, "Failed to start: %m");
    gateway->options = *options;
    gateway->lock_fd = -1;
    gateway->start_ns = clock_ns(CLOCK_REALTIME);
    r = gateway_read_config(options, &gateway->config);
    if (r < 0)
        return r;
    gateway->problems = (unsigned)r;
    r = gateway_prepare(gateway);
    if (r == 0)
        r = gateway_load_secret(gateway->config, &gateway->listen_secret);
    if (r == 0)
        r = gateway_begin(gateway);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(gateway);
    return 0;
}

int gateway_run(Gateway *gateway) {
    int r;

    if (gateway->n_slots == 0)
        log_notice("There is no [Send NAME] in the configuration, so nothing is sent");
    log_struct(LOG_LEVEL_NOTICE, 0, LOG_FIELDS({"PROFD_EVENT", "gateway-started"}),
               "Sending to %zu destination%s as host '%s'", gateway->n_slots,
               gateway->n_slots == 1 ? "" : "s", gateway->config->host);
    gateway_report(gateway);
    notify_socket_ready();
    r = loop_run(gateway->loop);
    if (r < 0)
        return log_error(r, "The gateway ends because %s() failed: %m",
                         loop_failed_in(gateway->loop));
    log_struct(LOG_LEVEL_NOTICE, 0, LOG_FIELDS({"PROFD_EVENT", "gateway-stopped"}),
               "Stopping, the next start goes on where this one ends");
    return 0;
}

Gateway *gateway_free(Gateway *gateway) {
    if (!gateway)
        return NULL;
    gateway_end(gateway);
    transport_free(gateway->transport);
    loop_free(gateway->loop);
    listen_secret_free(gateway->listen_secret);
    gateway_config_free(gateway->config);
    if (gateway->lock_fd >= 0)
        status_remove(gateway->options.runtime);
    closep(&gateway->lock_fd);
    free(gateway);
    return NULL;
}
