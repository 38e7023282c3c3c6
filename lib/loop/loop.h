/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The main loop: descriptors, timers, signals and deferred work, one thread. The only room that
 * knows libevent. A source is owned by who added it and may go while the loop runs, from its own
 * callback too; where ret is NULL it lives as long as the loop.
 */

#include <stdint.h>

#include "util/macro.h"

typedef struct Loop Loop;
typedef struct LoopSource LoopSource;
/* A negative return stops the loop, which then returns it. */
typedef int (*LoopCallback)(void *userdata);

int loop_new(Loop **ret);
/* Sources that are still there go with it. */
Loop *loop_free(Loop *loop);
DEFINE_CLEANUP(Loop *, loop_free);

int loop_add_readable(Loop *loop, int fd, LoopCallback on_readable, void *userdata,
                      LoopSource **ret);
int loop_add_writable(Loop *loop, int fd, LoopCallback on_writable, void *userdata,
                      LoopSource **ret);
/* Again and again, each period. */
int loop_add_timer(Loop *loop, uint64_t period_ns, LoopCallback on_timer, void *userdata,
                   LoopSource **ret);
int loop_add_signal(Loop *loop, int signal, LoopCallback on_signal, void *userdata,
                    LoopSource **ret);
/* Runs once for each loop_trigger() or loop_trigger_after(), behind what is ready already. */
int loop_add_deferred(Loop *loop, LoopCallback callback, void *userdata, LoopSource **ret);
int loop_trigger(LoopSource *deferred);
/* A later call takes the place of one that is pending. */
int loop_trigger_after(LoopSource *deferred, uint64_t delay_ns);
/* Accepts and returns NULL. */
LoopSource *loop_source_free(LoopSource *source);
DEFINE_CLEANUP(LoopSource *, loop_source_free);

/* Returns 0 after loop_stop(), or what a callback failed with. */
int loop_run(Loop *loop);
void loop_stop(Loop *loop);
