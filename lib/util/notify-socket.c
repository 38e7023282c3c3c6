/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/notify-socket.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "util/clock.h"
#include "util/macro.h"
#include "util/parse.h"

/*
 * sd_notify() waits while the service manager does not read. A program that records or sends must
 * go on then, so messages are sent here: what finds no room is dropped, since the next message is
 * newer. Only messages that come once wait for a moment.
 */

enum { NOTIFY_WAIT_MS = 100 };

static int notify_socket_address(const char *path, struct sockaddr_un *ret, socklen_t *ret_size) {
    size_t n = strlen(path);

    if ((path[0] != '/' && path[0] != '@') || n < 2 || n >= sizeof(ret->sun_path))
        return -EAFNOSUPPORT;
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret->sun_path, path, n);
    if (path[0] == '@')
        ret->sun_path[0] = '\0';
    *ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    return 0;
}

void notify_socket_send(const char *text, unsigned wait_ms) {
    const char *path = getenv("NOTIFY_SOCKET");
    const struct timeval wait = {.tv_usec = (suseconds_t)wait_ms * 1000};
    _cleanup_close_ int fd = -1;
    struct sockaddr_un address;
    socklen_t size;

    if (!path || notify_socket_address(path, &address, &size) < 0)
        return;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) < 0)
        return;
    (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL | (wait_ms == 0 ? MSG_DONTWAIT : 0),
                 (const struct sockaddr *)&address, size);
}

void notify_socket_ready(void) {
    notify_socket_send("READY=1", NOTIFY_WAIT_MS);
}

void notify_socket_reloading(void) {
    char text[64];

    (void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
                   clock_monotonic_ns() / NS_PER_US);
    notify_socket_send(text, NOTIFY_WAIT_MS);
}

void notify_socket_stopping(void) {
    notify_socket_send("STOPPING=1", NOTIFY_WAIT_MS);
}

/* WATCHDOG_PID is not looked at: of profd it is the keeper's, and the recorder feeds. */
uint64_t notify_socket_watchdog_ns(void) {
    const char *text = getenv("WATCHDOG_USEC");
    uint64_t us = 0;

    return text && parse_u64(text, &us) == 0 && us <= UINT64_MAX / NS_PER_US ? us * NS_PER_US : 0;
}
