/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The main loop: descriptors, timers and signals, one thread. The only room that knows libevent.
 * A source lives until the loop is freed.
 */

#include <stdint.h>

#include "util/macro.h"

typedef struct Loop Loop;
/* A negative return stops the loop, which then returns it. */
typedef int (*LoopCallback)(void *userdata);

int loop_new(Loop **ret);
Loop *loop_free(Loop *loop);
DEFINE_CLEANUP(Loop *, loop_free);

int loop_add_readable(Loop *loop, int fd, LoopCallback on_readable, void *userdata);
int loop_add_timer(Loop *loop, uint64_t period_ns, LoopCallback on_timer, void *userdata);
int loop_add_signal(Loop *loop, int signal, LoopCallback on_signal, void *userdata);

/* Returns 0 after loop_stop(), or what a callback failed with. */
int loop_run(Loop *loop);
void loop_stop(Loop *loop);
