/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A recorder from the keeper's point of view: a process, and a socket to it. */

#include "keeper/serve/serve.h"

typedef struct Child {
    pid_t pid; /* 0: none */
    ServeLink link;
    uint64_t ready_ns;    /* 0: it has not reported yet that it records */
    uint64_t leave_by_ns; /* deadline to finish, or to ask for the takeover; 0: no deadline */
} Child;

/* Runs `program` with argv and --recorder=FD, without any rights. may_take_over: no other recorder
 * runs that it would have to wait for. */
int child_start(Child *child, ServeContext *context, const char *program, char *const *argv,
                bool may_take_over);
void child_signal(const Child *child, int number);
void child_close(Child *child);
