/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A recorder as its keeper sees it: a process, and a socket to it. */

#include "keeper/serve/serve.h"

typedef struct Child {
    pid_t pid; /* 0: none */
    ServeLink link;
    uint64_t ready_ns;    /* 0: it does not record yet */
    uint64_t leave_by_ns; /* it is to have made room, or asked for it; 0: no such moment */
} Child;

/* Runs `program` with argv and --recorder=FD, without any right. may_take_over: nobody runs that it
 * has to wait for. */
int child_start(Child *child, ServeContext *context, const char *program, char *const *argv,
                bool may_take_over);
void child_signal(const Child *child, int number);
void child_close(Child *child);
