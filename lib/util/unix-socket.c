/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/unix-socket.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "util/macro.h"

/*
 * A socket gets its mode from the umask when it is created, so there is no moment in which others
 * may connect. An existing one is in use if it accepts a connection, and stale otherwise.
 */

enum { TRY_MS = 50 };

/* Linux has it since 6.16; older headers lack it. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

static int unix_socket_new(int *ret_fd) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

/* Clients that send some get EPERM; so do those of accepted sockets. Older kernels do not know it.
 */
static void unix_socket_refuse_descriptors(int fd) {
    int off = 0;

    (void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

static int unix_socket_bind(int fd, const struct sockaddr_un *address, mode_t mask) {
    mode_t before = umask(mask);
    int r = bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;

    (void)umask(before);
    return r;
}

static int unix_socket_remove_leftover(const struct sockaddr_un *address) {
    _cleanup_close_ int probe = -1;
    struct stat status;
    int r = unix_socket_new(&probe);

    if (r < 0)
        return r;
    if (lstat(address->sun_path, &status) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(status.st_mode))
        return -EEXIST;
    if (connect(probe, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
        (errno != ECONNREFUSED && errno != ENOENT))
        return -EADDRINUSE;
    return unlink(address->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

int unix_socket_listen(const struct sockaddr_un *address, const UnixSocketOptions *options,
                       int *ret_fd) {
    unsigned tries = options->patience_s * (1000 / TRY_MS);
    _cleanup_close_ int fd = -1;
    int r = unix_socket_new(&fd);

    if (r < 0)
        return r;
    r = unix_socket_bind(fd, address, options->mask);
    if (r == -EADDRINUSE) {
        r = unix_socket_remove_leftover(address);
        for (unsigned i = 0; r == -EADDRINUSE && i < tries; i++) {
            (void)poll(NULL, 0, TRY_MS);
            r = unix_socket_remove_leftover(address);
        }
        if (r == 0)
            r = unix_socket_bind(fd, address, options->mask);
    }
    if (r == 0)
        unix_socket_refuse_descriptors(fd);
    if (r == 0 && listen(fd, options->backlog) < 0)
        r = -errno;
    if (r < 0)
        return r;
    *ret_fd = TAKE_FD(fd);
    return 0;
}
