/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A descriptor that keeps whoever closes it last waiting for an hour, as any user can make one. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct Lingering {
    int fd, other; /* `other` keeps the connection open */
} Lingering;

/* Sends more over TCP than the other side reads, and lingers until it was read. */
static inline int lingering_new(Lingering *ret) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct linger linger = {.l_onoff = 1, .l_linger = 3600};
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof(address);
    static char data[1 << 16];

    ret->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listening, (struct sockaddr *)&address, size) < 0 || listen(listening, 1) < 0 ||
        getsockname(listening, (struct sockaddr *)&address, &size) < 0 ||
        connect(ret->fd, (struct sockaddr *)&address, size) < 0)
        return -errno;
    ret->other = accept(listening, NULL, NULL);
    (void)close(listening);
    while (send(ret->fd, data, sizeof(data), MSG_DONTWAIT) > 0)
        ;
    if (setsockopt(ret->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) < 0)
        return -errno;
    return ret->other < 0 ? -errno : 0;
}

/* Sends bytes and the descriptor, and closes it, so that it is open only on its way. */
static inline int lingering_send(Lingering *lingering, int socket, const void *bytes, size_t n,
                                 int flags) {
    struct iovec vector = {.iov_base = (void *)bytes, .iov_len = n};
    char control[CMSG_SPACE(sizeof(int))] = "";
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int r;

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &lingering->fd, sizeof(int));
    r = sendmsg(socket, &message, MSG_NOSIGNAL | flags) < 0 ? -errno : 0;
    /* Not the last one, unless that failed. */
    if (r == 0)
        (void)close(lingering->fd);
    return r;
}
