/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/fd-message.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>

/*
 * sendmsg and recvmsg with SCM_RIGHTS, for both sides. Received descriptors are open in our process
 * even if we did not expect them: all but a single expected one are closed.
 */

int message_send(int socket, const void *bytes, size_t n, int fd, int flags) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {};
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = n};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t k;

    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    }
    do
        k = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
    while (k < 0 && errno == EINTR);
    return k < 0 ? -errno : 0;
}

/* Returns how many descriptors were received; the first is *ret_fd, the others are closed. */
static size_t fd_message_take_fds(struct msghdr *message, int *ret_fd) {
    size_t taken = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < n; i++, taken++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
            if (taken == 0)
                *ret_fd = fd;
            else
                closep(&fd);
        }
    }
    return taken;
}

int message_receive(int socket, void *ret, size_t n, int *ret_fd) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))];
    struct iovec part = {.iov_base = ret, .iov_len = n};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    _cleanup_close_ int fd = -1;
    size_t n_fds;
    ssize_t k;

    assert(n <= INT_MAX);
    do
        k = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (k < 0 && errno == EINTR);
    if (k < 0)
        return errno == ECONNRESET ? -EPIPE : -errno;
    n_fds = fd_message_take_fds(&message, &fd);
    if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || n_fds > 1)
        return -EMSGSIZE;
    if (k == 0)
        return -EPIPE;
    *ret_fd = TAKE_FD(fd);
    return (int)k;
}
