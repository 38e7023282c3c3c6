/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sockets that listen. */

#include "listen/listen-text.h"

/* The owner and the group of the process may connect, others may not. Replaces a socket on which
 * nobody listens any more; -EADDRINUSE: somebody does. */
int listen_socket_open_unix(const char *path, int *ret_fd);
int listen_socket_open_address(const ListenAddress *address, int *ret_fd);
