/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "loop/loop.h"

#include <errno.h>
#include <event2/event.h>

/*
 * libevent behind four verbs. Sources are kept in a list only to be freed; what a callback returns
 * decides whether the loop goes on.
 */

enum { NS_PER_SEC = 1000000000, NS_PER_US = 1000 };

typedef struct Source {
    struct Source *next;
    Loop *loop;
    struct event *event;
    LoopCallback callback;
    void *userdata;
} Source;

struct Loop {
    struct event_base *base;
    Source *sources;
    int result;
};

static Source *source_free(Source *s) {
    if (!s)
        return NULL;
    if (s->event)
        event_free(s->event);
    free(s);
    return NULL;
}
DEFINE_CLEANUP(Source *, source_free);

int loop_new(Loop **ret) {
    _cleanup_(loop_freep) Loop *loop = calloc(1, sizeof(*loop));

    if (!loop)
        return -ENOMEM;
    loop->base = event_base_new();
    if (!loop->base)
        return -ENOMEM;
    *ret = TAKE_PTR(loop);
    return 0;
}

Loop *loop_free(Loop *loop) {
    if (!loop)
        return NULL;
    while (loop->sources) {
        Source *s = loop->sources;

        loop->sources = s->next;
        source_free(s);
    }
    if (loop->base)
        event_base_free(loop->base);
    free(loop);
    return NULL;
}

static void dispatch(evutil_socket_t fd _unused_, short what _unused_, void *userdata) {
    Source *s = userdata;
    int r = s->callback(s->userdata);

    if (r < 0) {
        s->loop->result = r;
        loop_stop(s->loop);
    }
}

static int add(Loop *loop, int fd_or_signal, short what, const struct timeval *period,
               LoopCallback callback, void *userdata) {
    _cleanup_(source_freep) Source *s = calloc(1, sizeof(*s));

    if (!s)
        return -ENOMEM;
    s->loop = loop;
    s->callback = callback;
    s->userdata = userdata;
    s->event = event_new(loop->base, fd_or_signal, what | EV_PERSIST, dispatch, s);
    if (!s->event || event_add(s->event, period) < 0)
        return -ENOMEM;
    s->next = loop->sources;
    loop->sources = TAKE_PTR(s);
    return 0;
}

int loop_add_readable(Loop *loop, int fd, LoopCallback on_readable, void *userdata) {
    return add(loop, fd, EV_READ, NULL, on_readable, userdata);
}

int loop_add_timer(Loop *loop, uint64_t period_ns, LoopCallback on_timer, void *userdata) {
    struct timeval period = {
        .tv_sec = (time_t)(period_ns / NS_PER_SEC),
        .tv_usec = (suseconds_t)(period_ns % NS_PER_SEC / NS_PER_US),
    };

    return add(loop, -1, 0, &period, on_timer, userdata);
}

int loop_add_signal(Loop *loop, int signal, LoopCallback on_signal, void *userdata) {
    return add(loop, signal, EV_SIGNAL, NULL, on_signal, userdata);
}

int loop_run(Loop *loop) {
    loop->result = 0;
    if (event_base_dispatch(loop->base) < 0)
        return -EIO;
    return loop->result;
}

void loop_stop(Loop *loop) {
    event_base_loopbreak(loop->base);
}
