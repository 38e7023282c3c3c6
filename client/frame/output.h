/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The output of commands: stdout, in large blocks, maybe through a pager. A command appends to
 * `buffer` and calls output_breathe() regularly; that reports a reader that is gone or a full disk,
 * and the command stops.
 */

#include <sys/types.h>

#include "util/buffer.h"

typedef struct Output {
    Buffer buffer;
    int fd;
    pid_t pager; /* 0: none */
    int error;   /* the first failure of write(2) or of memory, negative; sticky */
} Output;

Output output_to(int fd);
/* Frees it without writing the rest. */
void output_done(Output *o);

/* Starts a pager if the descriptor is a terminal and the environment does not forbid it
 * ($PROFD_PAGER, else $PAGER, else less or more; "" and "cat" mean none). Failing to start one is
 * not an error. */
void output_page(Output *o);

/* Writes everything that is buffered. Returns 0 or the sticky negative errno. */
int output_flush(Output *o);

enum { OUTPUT_BLOCK = 256 * 1024 };

/* Writes if a block is full. */
static inline int output_breathe(Output *o) {
    return o->buffer.size < OUTPUT_BLOCK && !o->buffer.error ? o->error : output_flush(o);
}

/* Flushes, closes, and waits for the pager. Returns 0 or a negative errno; quitting the pager early
 * is not an error. Do not print a message for -EPIPE. */
int output_close(Output *o);
