/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/control-socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "util/log.h"
#include "util/macro.h"
#include "util/unix-socket.h"

/*
 * The folder may belong to the recorder, so no link in it is followed and no mode is changed by
 * name. The socket is bound relative to the open folder, so the path may have any length.
 */

enum {
    BACKLOG = 1024,         /* connections wait here while a recorder is restarted */
    PATIENCE_S = 2,         /* after a profd was killed, its recorder may live a moment longer */
    NOT_SOCKET_MODE = 0111, /* the rights are checked at each call */
};

static int control_socket_open_below(int folder, int *ret_fd) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", folder,
             CONTROL_SOCKET_NAME);
    return unix_socket_listen(
        &address,
        &(UnixSocketOptions){.mask = NOT_SOCKET_MODE, .backlog = BACKLOG, .patience_s = PATIENCE_S},
        ret_fd);
}

/* Acts as the owner of the folder: without CAP_DAC_OVERRIDE root may not write to other users'
 * folders. */
static int control_socket_open_as_owner(int folder, int *ret_fd) {
    struct stat status;
    int before, r;

    if (fstat(folder, &status) < 0)
        return -errno;
    before = setfsuid(status.st_uid);
    r = control_socket_open_below(folder, ret_fd);
    (void)setfsuid((uid_t)before);
    return r;
}

int control_socket_open(const char *runtime, int *ret_fd) {
    _cleanup_close_ int folder = open(runtime, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r;

    if (folder < 0)
        return log_error(-errno, "Failed to open the folder '%s' for the control socket: %m",
                         runtime);
    r = control_socket_open_as_owner(folder, ret_fd);
    if (r == -EADDRINUSE)
        return log_error(
            r, "Another profd listens on '%s/%s', stop it or choose another folder with --runtime",
            runtime, CONTROL_SOCKET_NAME);
    return r < 0 ? log_error(r, "Failed to listen on '%s/%s': %m", runtime, CONTROL_SOCKET_NAME)
                 : 0;
}
