/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/watchdog.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "util/macro.h"

/*
 * The recorder feeds the watchdog. One that dies is the keeper's to deal with, not systemd's, whose
 * way would cost what the rings hold: so the next one gets the watchdog's whole time from its start
 * on. This is the one word of systemd's protocol that the keeper knows: a datagram to the address
 * that NOTIFY_SOCKET names, where a leading @ stands for an abstract one.
 */

void watchdog_feed(void) {
    static const char word[] = "WATCHDOG=1";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t n = path ? strlen(path) : 0;
    _cleanup_close_ int fd = -1;

    if (n < 2 || n >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, n);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        (void)sendto(fd, word, strlen(word), MSG_NOSIGNAL, (struct sockaddr *)&address,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
}
