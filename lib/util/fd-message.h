/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Messages over a SOCK_SEQPACKET socket, each with at most one descriptor. */

#include <stddef.h>

#include "util/macro.h"

/* fd -1: none. */
int message_send(int socket, const void *bytes, size_t n, int fd, int flags);
/*
 * The number of received bytes (at most n), or a negative errno: -EPIPE when the other side is
 * gone, -EMSGSIZE for a message that is longer or has more than one descriptor, all of which are
 * then closed. *ret_fd is -1 if none was received.
 */
int message_receive(int socket, void *ret, size_t n, int *ret_fd);
