/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Unix sockets that listen. */

#include <sys/stat.h>
#include <sys/un.h>

typedef struct UnixSocketOptions {
    mode_t mask;         /* the rights that it lacks, like a umask */
    int backlog;         /* as for listen() */
    unsigned patience_s; /* how long it waits for another listener to end */
} UnixSocketOptions;

/* Replaces a socket that nobody listens on any more. -EADDRINUSE: somebody does; -EEXIST: what has
 * the name is no socket. Changes the umask for a moment, so there must be only one thread. */
int unix_socket_listen(const struct sockaddr_un *address, const UnixSocketOptions *options,
                       int *ret_fd);
