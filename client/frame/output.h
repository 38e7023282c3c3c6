/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Where a result goes: stdout, in big blocks, perhaps through a pager. A command appends to
 * `buffer` and calls output_breathe() now and then; a reader that went away or a full disk is
 * then known, and the command stops.
 */

#include <sys/types.h>

#include "util/buffer.h"

typedef struct Output {
    Buffer buffer;
    int fd;
    pid_t pager; /* 0: none */
    int error;   /* the first failure of write(2) or of memory, negative; sticks */
} Output;

Output output_to(int fd);
/* Frees, without writing what is still there. */
void output_done(Output *o);

/* Starts a pager between us and the descriptor, when that is a terminal and the environment does
 * not forbid it ($PROFD_PAGER, else $PAGER, else less or more; "" and "cat" mean none). That none
 * can be started is no error. */
void output_page(Output *o);

/* Writes all that is buffered. Returns 0 or the negative errno that stuck. */
int output_flush(Output *o);

enum { OUTPUT_BLOCK = 256 * 1024 };

/* Writes when a block is full. */
static inline int output_breathe(Output *o) {
    return o->buffer.size < OUTPUT_BLOCK && !o->buffer.error ? o->error : output_flush(o);
}

/* Flushes, closes, waits for the pager. Returns 0 or negative errno; what a pager did not want to
 * see is no error. -EPIPE is to be met in silence. */
int output_close(Output *o);
