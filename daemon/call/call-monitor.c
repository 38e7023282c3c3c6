/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "call/call-monitor.h"

#include <errno.h>
#include <sys/queue.h>

#include "call/answer.h"
#include "util/clock.h"

/*
 * Publishing never waits for a client. Events that do not fit into a client's buffer are dropped,
 * and the next event that fits comes after one with the number of dropped events.
 */

typedef struct Listener Listener;

struct Listener {
    LIST_ENTRY(Listener) list;
    Call *call;
    uint64_t dropped;
};

struct Monitor {
    LIST_HEAD(, Listener) listeners;
};

int monitor_new(Monitor **ret) {
    *ret = calloc(1, sizeof(**ret));
    return *ret ? 0 : -ENOMEM;
}

static void call_monitor_listener_free(Listener *listener) {
    LIST_REMOVE(listener, list);
    free(listener);
}

/* The control frees these calls. */
Monitor *monitor_free(Monitor *monitor) {
    if (!monitor)
        return NULL;
    while (!LIST_EMPTY(&monitor->listeners))
        call_monitor_listener_free(LIST_FIRST(&monitor->listeners));
    free(monitor);
    return NULL;
}

static void call_monitor_on_gone(void *userdata) {
    call_monitor_listener_free(userdata);
}

static json_t *call_monitor_encode(const MonitorEvent *event) {
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "event", event->event, "timeUsec",
                     answer_time(clock_ns(CLOCK_REALTIME)), "session",
                     answer_text_or_null(event->session), "text",
                     answer_text(event->text ? event->text : ""), "path",
                     answer_text_or_null(event->path), "count",
                     event->has_count ? answer_count(event->count) : json_null());
}

static bool call_monitor_send(const Listener *listener, const MonitorEvent *event) {
    json_t *parameters = call_monitor_encode(event);

    return parameters && call_continue(listener->call, parameters) >= 0;
}

static void call_monitor_report(Listener *listener, const MonitorEvent *event) {
    const MonitorEvent dropped = {.event = "dropped",
                                  .text = "events found no room, the client reads too slowly",
                                  .count = listener->dropped,
                                  .has_count = true};

    if (listener->dropped > 0 && !call_monitor_send(listener, &dropped)) {
        listener->dropped++;
        return;
    }
    listener->dropped = call_monitor_send(listener, event) ? 0 : 1;
}

int monitor_subscribe(Monitor *monitor, Call *call, const char *text) {
    Listener *listener;

    listener = calloc(1, sizeof(*listener));
    if (!listener)
        return -ENOMEM;
    listener->call = call;
    LIST_INSERT_HEAD(&monitor->listeners, listener, list);
    call_on_gone(call, call_monitor_on_gone, listener);
    call_monitor_report(listener, &(MonitorEvent){.event = "ready", .text = text});
    return 0;
}

void monitor_publish(Monitor *monitor, const MonitorEvent *event) {
    for (Listener *listener = LIST_FIRST(&monitor->listeners), *next; listener; listener = next) {
        next = LIST_NEXT(listener, list);
        call_monitor_report(listener, event);
    }
}
