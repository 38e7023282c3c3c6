/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reading from a client, and closing its connection, without waiting for what the client sends. */

#include <stddef.h>
#include <sys/types.h>

#include "control/control-private.h"

/* Before anything is read. */
void intake_begin(int fd);
/* As recv(), without waiting, but -EPERM if a descriptor comes with the next bytes, which then stay
 * where they are; -EAGAIN: there is nothing. */
ssize_t intake_receive(int fd, void *ret, size_t n);
/* Takes ownership of the descriptor. */
void intake_close(const Control *control, int fd);
