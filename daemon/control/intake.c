/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control/intake.h"

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * A client can send descriptors along, although no message has any. The kernel drops those that
 * nobody takes, but by then they may be the last of their files, and the end of a file can take as
 * long as its owner likes: a TCP socket that lingers, a file whose FUSE server does not answer. Not
 * even SIGKILL ends that. Where the kernel can, the listening socket refuses descriptors (see
 * util/unix-socket). Older kernels cannot, so bytes are looked at first, and read only when no
 * descriptor comes with them.
 */

enum { DRAIN_BYTES = 4096 };

/* Urgent bytes, of which the kernel has a way of its own, come in turn like others, with what is
 * sent along. */
void intake_begin(int fd) {
    int on = 1;

    (void)setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
}

static ssize_t intake_peek(int fd, void *data, size_t n) {
    struct iovec vector = {.iov_base = data, .iov_len = n};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    ssize_t size = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);

    if (size < 0)
        return -errno;
    /* There was no room for control data, and descriptors are the only kind that is sent here. */
    return message.msg_flags & MSG_CTRUNC ? -EPERM : size;
}

ssize_t intake_receive(int fd, void *ret, size_t n) {
    ssize_t size = intake_peek(fd, ret, n);

    if (size <= 0)
        return size;
    /* No more than was looked at. */
    size = recv(fd, ret, (size_t)size, MSG_DONTWAIT);
    return size < 0 ? -errno : size;
}

/* Drops what was not read. -EPERM: there are descriptors in it. */
static int intake_drain(int fd) {
    uint8_t data[DRAIN_BYTES];
    ssize_t n;

    /* From now on the client can add nothing. */
    (void)shutdown(fd, SHUT_RD);
    while ((n = intake_receive(fd, data, sizeof(data))) > 0)
        ;
    if (n != -EPERM)
        return 0;
    /* The client need not wait for whoever closes it. */
    (void)shutdown(fd, SHUT_RDWR);
    return -EPERM;
}

void intake_close(const Control *control, int fd) {
    if (intake_drain(fd) == 0 || !control->options.dispose)
        closep(&fd);
    else
        control->options.dispose(control->options.userdata, fd);
}
