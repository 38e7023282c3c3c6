/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One message, with at most one descriptor beside it, over a SOCK_SEQPACKET socket. */

#include <stddef.h>

#include "util/macro.h"

/* fd -1: none. */
int message_send(int socket, const void *bytes, size_t n, int fd, int flags);
/*
 * How many bytes came (never more than n), or a negative errno: -EPIPE when the other side is gone,
 * -EMSGSIZE for a message that is longer or brings more than one descriptor; what it brought is
 * then closed. *ret_fd is -1 when none came.
 */
int message_receive(int socket, void *ret, size_t n, int *ret_fd);
