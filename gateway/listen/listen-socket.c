/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "listen/listen-socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "util/macro.h"
#include "util/unix-socket.h"

/*
 * A path is for the user and the group of the gateway. An address is for whoever can reach it;
 * listen-tls and the token then say who may ask.
 */

enum { BACKLOG = 64, NOT_SOCKET_MODE = 0117 };

int listen_socket_open_unix(const char *path, int *ret_fd) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    return unix_socket_listen(
        &address, &(UnixSocketOptions){.mask = NOT_SOCKET_MODE, .backlog = BACKLOG}, ret_fd);
}

int listen_socket_open_address(const ListenAddress *address, int *ret_fd) {
    _cleanup_close_ int fd =
        socket(address->socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, (const struct sockaddr *)&address->socket, address->size) < 0 ||
        listen(fd, BACKLOG) < 0)
        return -errno;
    *ret_fd = TAKE_FD(fd);
    return 0;
}
