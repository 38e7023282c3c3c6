/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The main loop: descriptors, timers, signals and deferred work, on one thread. The only room that
 * uses libevent, but for evhttp in gateway/listen. The caller that adds a source owns it and may
 * free it while the loop runs, also from its own callback; if ret is NULL it lives as long as the
 * loop.
 */

#include <stdint.h>

#include "util/macro.h"

typedef struct Loop Loop;
typedef struct LoopSource LoopSource;
/* A negative return value stops the loop, which then returns it. */
typedef int (*LoopCallback)(void *userdata);

int loop_new(Loop **ret);
/* Also frees the remaining sources. */
Loop *loop_free(Loop *loop);
DEFINE_CLEANUP(Loop *, loop_free);

/* A callback and its name, by which loop_failed_in() reports it. */
typedef struct LoopHandler {
    LoopCallback run;
    const char *name;
} LoopHandler;
#define LOOP_HANDLER(callback) ((LoopHandler){callback, #callback})

int loop_add_readable_handler(Loop *loop, int fd, LoopHandler on_readable, void *userdata,
                              LoopSource **ret);
int loop_add_writable_handler(Loop *loop, int fd, LoopHandler on_writable, void *userdata,
                              LoopSource **ret);
int loop_add_timer_handler(Loop *loop, uint64_t period_ns, LoopHandler on_timer, void *userdata,
                           LoopSource **ret);
int loop_add_signal_handler(Loop *loop, int signal, LoopHandler on_signal, void *userdata,
                            LoopSource **ret);
int loop_add_deferred_handler(Loop *loop, LoopHandler handler, void *userdata, LoopSource **ret);

#define loop_add_readable(loop, fd, on_readable, userdata, ret)                                    \
    loop_add_readable_handler(loop, fd, LOOP_HANDLER(on_readable), userdata, ret)
#define loop_add_writable(loop, fd, on_writable, userdata, ret)                                    \
    loop_add_writable_handler(loop, fd, LOOP_HANDLER(on_writable), userdata, ret)
/* Calls on_timer once in each period, which must not be 0. All timers of a loop count from the
 * moment when it was made, so the first period is shorter. */
#define loop_add_timer(loop, period_ns, on_timer, userdata, ret)                                   \
    loop_add_timer_handler(loop, period_ns, LOOP_HANDLER(on_timer), userdata, ret)
int loop_set_period(LoopSource *timer, uint64_t period_ns);
#define loop_add_signal(loop, signal, on_signal, userdata, ret)                                    \
    loop_add_signal_handler(loop, signal, LOOP_HANDLER(on_signal), userdata, ret)
/* Runs once for each loop_trigger() or loop_trigger_after(), after sources that are ready
 * already. */
#define loop_add_deferred(loop, callback, userdata, ret)                                           \
    loop_add_deferred_handler(loop, LOOP_HANDLER(callback), userdata, ret)
int loop_trigger(LoopSource *deferred);
/* A later call replaces a pending one. */
int loop_trigger_after(LoopSource *deferred, uint64_t delay_ns);
/* Accepts and returns NULL. */
LoopSource *loop_source_free(LoopSource *source);
DEFINE_CLEANUP(LoopSource *, loop_source_free);

/* Returns 0 after loop_stop(), or the error of a callback. */
int loop_run(Loop *loop);
/* The name of the callback that made loop_run() fail, or "the loop" itself. */
const char *loop_failed_in(const Loop *loop);
void loop_stop(Loop *loop);

/* For the libraries that serve a protocol on a loop of libevent, as evhttp does. */
struct event_base;
struct event_base *loop_base(Loop *loop);
