/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "listen/listen-socket.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "util/macro.h"

/*
 * Binds sockets. A Unix socket gets its mode when it is created, so there is no moment in which
 * others may connect.
 */

enum { BACKLOG = 64, NOT_SOCKET_MODE = 0117 };

static int listen_socket_new(int family, int *ret_fd) {
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

static int listen_socket_bind_unix(int fd, const struct sockaddr_un *address) {
    mode_t before = umask(NOT_SOCKET_MODE);
    int r = bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;

    (void)umask(before);
    return r;
}

static int listen_socket_remove_leftover(const struct sockaddr_un *address) {
    _cleanup_close_ int probe = -1;
    struct stat status;
    int r = listen_socket_new(AF_UNIX, &probe);

    if (r < 0)
        return r;
    if (lstat(address->sun_path, &status) < 0)
        return -errno;
    if (!S_ISSOCK(status.st_mode) ||
        connect(probe, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
        errno != ECONNREFUSED)
        return -EADDRINUSE;
    return unlink(address->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

static int listen_socket_listen(int fd, int *ret_fd) {
    if (listen(fd, BACKLOG) < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

int listen_socket_open_unix(const char *path, int *ret_fd) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _cleanup_close_ int fd = -1;
    int r;

    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    r = listen_socket_new(AF_UNIX, &fd);
    if (r == 0)
        r = listen_socket_bind_unix(fd, &address);
    if (r == -EADDRINUSE) {
        r = listen_socket_remove_leftover(&address);
        if (r == 0)
            r = listen_socket_bind_unix(fd, &address);
    }
    if (r == 0)
        r = listen_socket_listen(fd, ret_fd);
    if (r == 0)
        fd = -1;
    return r;
}

int listen_socket_open_address(const ListenAddress *address, int *ret_fd) {
    _cleanup_close_ int fd = -1;
    int on = 1, r = listen_socket_new(address->socket.ss_family, &fd);

    if (r < 0)
        return r;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, (const struct sockaddr *)&address->socket, address->size) < 0)
        return -errno;
    r = listen_socket_listen(fd, ret_fd);
    if (r == 0)
        fd = -1;
    return r;
}
