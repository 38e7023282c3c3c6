/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "util/log.h"
#include "util/macro.h"

/*
 * The folder may belong to the recorder, so no link in it is followed and no mode is changed by
 * name: the socket gets its mode from the umask when it is created. It is bound relative to the
 * open folder, so the path may have any length. An existing socket is in use if it accepts a
 * connection, and stale otherwise.
 */

enum {
    BACKLOG = 1024, /* connections wait here while a recorder is restarted */
    TRIES = 40,
    TRY_MS = 50,
    NOT_SOCKET_MODE = 0111, /* the rights are checked at each call */
};

static struct sockaddr_un listen_address_in(int folder) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", folder,
             LISTEN_NAME);
    return address;
}

static int listen_new_socket(int *ret_fd) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

static int listen_bind_socket(int fd, const struct sockaddr_un *address) {
    mode_t before = umask(NOT_SOCKET_MODE);
    int r = bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;

    (void)umask(before);
    return r;
}

/* -EADDRINUSE: somebody listens on it. */
static int listen_remove_leftover(int folder, const struct sockaddr_un *address) {
    _cleanup_close_ int probe = -1;
    int r = listen_new_socket(&probe);

    if (r < 0)
        return r;
    if (connect(probe, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN)
        return -EADDRINUSE;
    return unlinkat(folder, LISTEN_NAME, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int listen_open_below(int folder, int *ret_fd) {
    struct sockaddr_un address = listen_address_in(folder);
    _cleanup_close_ int fd = -1;
    int r = listen_new_socket(&fd);

    if (r < 0)
        return r;
    r = listen_bind_socket(fd, &address);
    if (r == -EADDRINUSE) {
        r = listen_remove_leftover(folder, &address);
        /* After a profd was killed, its recorder may live a moment longer. */
        for (int i = 0; r == -EADDRINUSE && i < TRIES; i++) {
            (void)poll(NULL, 0, TRY_MS);
            r = listen_remove_leftover(folder, &address);
        }
        if (r == 0)
            r = listen_bind_socket(fd, &address);
    }
    if (r == 0 && listen(fd, BACKLOG) < 0)
        r = -errno;
    if (r < 0)
        return r;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* Acts as the owner of the folder: without CAP_DAC_OVERRIDE root may not write to other users'
 * folders. */
static int listen_open_as_owner(int folder, int *ret_fd) {
    struct stat status;
    int before, r;

    if (fstat(folder, &status) < 0)
        return -errno;
    before = setfsuid(status.st_uid);
    r = listen_open_below(folder, ret_fd);
    (void)setfsuid((uid_t)before);
    return r;
}

int listen_open(const char *runtime, int *ret_fd) {
    _cleanup_close_ int folder = open(runtime, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r;

    if (folder < 0)
        return log_error(-errno, "Failed to open the folder '%s' for the control socket: %m",
                         runtime);
    r = listen_open_as_owner(folder, ret_fd);
    if (r == -EADDRINUSE)
        return log_error(
            r, "Another profd listens on '%s/%s', stop it or choose another folder with --runtime",
            runtime, LISTEN_NAME);
    return r < 0 ? log_error(r, "Failed to listen on '%s/%s': %m", runtime, LISTEN_NAME) : 0;
}
