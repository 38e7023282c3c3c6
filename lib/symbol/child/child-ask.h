/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Work on a file of somebody else's, in a child without any right. */

#include "util/buffer.h"

typedef struct ChildWork {
    int fds[2]; /* of the files; -1: none */
    /* Runs in the child, a copy of us: writes its reply to `to`. */
    void (*run)(const int fds[2], int to, const void *arg);
    const void *arg;
    unsigned seconds_max;
    size_t reply_max; /* little more than this is read */
} ChildWork;

/* 0 with the reply, which is short or empty if the child died or took too long; or a negative errno
 * if there could be no child. */
int child_ask(const ChildWork *work, Buffer *ret);
