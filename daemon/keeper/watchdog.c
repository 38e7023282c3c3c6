/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/watchdog.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "util/macro.h"

/*
 * Normally the recorder feeds the watchdog. When a recorder dies, the keeper restarts it; a restart
 * by systemd would lose what the rings hold. So the keeper feeds the watchdog once at each start,
 * and the next recorder has the whole watchdog time. This is the only message of systemd's protocol
 * that the keeper sends: a datagram to the address in NOTIFY_SOCKET, where a leading @ means an
 * abstract address.
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
