/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "loop/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <sys/queue.h>

#include "util/clock.h"

/*
 * Wraps libevent in a few functions. Sources are in a list so that the loop can free the remaining
 * ones; the return value of a callback decides whether the loop goes on.
 *
 * A thread that wakes up finds nothing of its own in the caches of the CPU, which costs more than
 * what most timers do. So all timers count from the same moment, and those of 1 s and 5 s wake the
 * thread together.
 */

enum { LATE_SHARE = 8 };

struct LoopSource {
    LIST_ENTRY(LoopSource) list;
    Loop *loop;
    struct event *event;
    LoopHandler handler;
    void *userdata;
    uint64_t period_ns; /* of a timer */
    bool is_listed;
};

struct Loop {
    struct event_base *base;
    uint64_t origin_ns; /* timers are due at this time and multiples of their period */
    LIST_HEAD(, LoopSource) sources;
    int result;
    const char *failed_in;
};

LoopSource *loop_source_free(LoopSource *s) {
    if (!s)
        return NULL;
    if (s->event)
        event_free(s->event);
    if (s->is_listed)
        LIST_REMOVE(s, list);
    free(s);
    return NULL;
}

static uint64_t loop_now_ns(const Loop *loop) {
    struct timeval now = {};

    /* The time by which libevent decides what is due: the same for all that runs in one wake-up. */
    (void)event_base_gettimeofday_cached(loop->base, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_usec * NS_PER_US;
}

int loop_new(Loop **ret) {
    _cleanup_(loop_freep) Loop *loop = calloc(1, sizeof(*loop));

    if (!loop)
        return -ENOMEM;
    loop->base = event_base_new();
    if (!loop->base)
        return -ENOMEM;
    loop->origin_ns = loop_now_ns(loop);
    *ret = TAKE_PTR(loop);
    return 0;
}

Loop *loop_free(Loop *loop) {
    if (!loop)
        return NULL;
    while (!LIST_EMPTY(&loop->sources))
        loop_source_free(LIST_FIRST(&loop->sources));
    if (loop->base)
        event_base_free(loop->base);
    free(loop);
    return NULL;
}

static struct timeval loop_timeval_of(uint64_t ns) {
    return (struct timeval){
        .tv_sec = (time_t)(ns / NS_PER_SECOND),
        .tv_usec = (suseconds_t)(ns % NS_PER_SECOND / NS_PER_US),
    };
}

int loop_trigger_after(LoopSource *deferred, uint64_t delay_ns) {
    struct timeval delay = loop_timeval_of(delay_ns);

    return event_add(deferred->event, &delay) < 0 ? -ENOMEM : 0;
}

/* `again`: it was due just now, and a clock that differs a little must not make it due twice. */
static int loop_arm_timer(LoopSource *s, bool again) {
    uint64_t period = s->period_ns, passed = (loop_now_ns(s->loop) - s->loop->origin_ns) % period,
             delay = period - passed;

    return loop_trigger_after(s, again && delay < period / LATE_SHARE ? delay + period : delay);
}

/* The callback may have freed the source. */
static void loop_dispatch(evutil_socket_t fd _unused_, short what _unused_, void *userdata) {
    LoopSource *s = userdata;
    const char *name = s->handler.name;
    Loop *loop = s->loop;
    int r = s->period_ns > 0 ? loop_arm_timer(s, true) : 0;

    if (r == 0)
        r = s->handler.run(s->userdata);
    if (r < 0) {
        loop->result = r;
        loop->failed_in = name;
        loop_stop(loop);
    }
}

static int loop_new_source(Loop *loop, int fd_or_signal, short what, LoopHandler handler,
                           void *userdata, LoopSource **ret) {
    _cleanup_(loop_source_freep) LoopSource *s = calloc(1, sizeof(*s));

    if (!s)
        return -ENOMEM;
    *s = (LoopSource){.loop = loop, .handler = handler, .userdata = userdata};
    s->event = event_new(loop->base, fd_or_signal, what, loop_dispatch, s);
    if (!s->event)
        return -ENOMEM;
    LIST_INSERT_HEAD(&loop->sources, s, list);
    s->is_listed = true;
    *ret = TAKE_PTR(s);
    return 0;
}

static int loop_add(Loop *loop, int fd_or_signal, short what, uint64_t period_ns,
                    LoopHandler handler, void *userdata, LoopSource **ret) {
    _cleanup_(loop_source_freep) LoopSource *s = NULL;
    int r = loop_new_source(loop, fd_or_signal, what, handler, userdata, &s);

    if (r == 0 && period_ns > 0)
        r = loop_set_period(s, period_ns);
    else if (r == 0 && event_add(s->event, NULL) < 0)
        r = -ENOMEM;
    if (r < 0)
        return r;
    if (ret)
        *ret = s;
    s = NULL;
    return 0;
}

int loop_add_readable_handler(Loop *loop, int fd, LoopHandler on_readable, void *userdata,
                              LoopSource **ret) {
    return loop_add(loop, fd, EV_READ | EV_PERSIST, 0, on_readable, userdata, ret);
}

int loop_add_writable_handler(Loop *loop, int fd, LoopHandler on_writable, void *userdata,
                              LoopSource **ret) {
    return loop_add(loop, fd, EV_WRITE | EV_PERSIST, 0, on_writable, userdata, ret);
}

int loop_add_timer_handler(Loop *loop, uint64_t period_ns, LoopHandler on_timer, void *userdata,
                           LoopSource **ret) {
    return loop_add(loop, -1, 0, period_ns, on_timer, userdata, ret);
}

int loop_set_period(LoopSource *timer, uint64_t period_ns) {
    if (timer->period_ns == period_ns)
        return 0;
    timer->period_ns = period_ns;
    return loop_arm_timer(timer, false);
}

int loop_add_signal_handler(Loop *loop, int signal, LoopHandler on_signal, void *userdata,
                            LoopSource **ret) {
    return loop_add(loop, signal, EV_SIGNAL | EV_PERSIST, 0, on_signal, userdata, ret);
}

int loop_add_deferred_handler(Loop *loop, LoopHandler handler, void *userdata, LoopSource **ret) {
    return loop_new_source(loop, -1, 0, handler, userdata, ret);
}

int loop_trigger(LoopSource *deferred) {
    return loop_trigger_after(deferred, 0);
}

int loop_run(Loop *loop) {
    loop->result = 0;
    loop->failed_in = NULL;
    if (event_base_dispatch(loop->base) < 0)
        return -EIO;
    return loop->result;
}

const char *loop_failed_in(const Loop *loop) {
    return loop->failed_in ?: "the loop";
}

void loop_stop(Loop *loop) {
    event_base_loopbreak(loop->base);
}

struct event_base *loop_base(Loop *loop) {
    return loop->base;
}
