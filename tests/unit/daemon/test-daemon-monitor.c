/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "call/call-monitor.h"

#include <errno.h>
#include <string.h>

#include "test.h"

/* A client that reads slowly learns how many events were dropped for it, and holds up nobody else.
 * The calls of the control are played by the test. */

enum { HEARD_MAX = 16 };

struct Call {
    bool is_full;
    unsigned n;
    char heard[HEARD_MAX][16];
    int64_t counts[HEARD_MAX];
    void (*on_gone)(void *userdata);
    void *userdata;
};

int call_continue(Call *call, json_t *parameters) {
    if (call->is_full || call->n == HEARD_MAX) {
        json_decref(parameters);
        return -ENOBUFS;
    }
    snprintf(call->heard[call->n], sizeof(call->heard[0]), "%s",
             json_string_value(json_object_get(parameters, "event")));
    call->counts[call->n++] = json_integer_value(json_object_get(parameters, "count"));
    json_decref(parameters);
    return 0;
}

void call_on_gone(Call *call, void (*on_gone)(void *userdata), void *userdata) {
    call->on_gone = on_gone;
    call->userdata = userdata;
}

TEST(a_monitor_gets_events_from_its_call_on) {
    _cleanup_(monitor_freep) Monitor *monitor = NULL;
    Call first = {}, second = {};

    CHECK_OK(monitor_new(&monitor));
    CHECK_OK(monitor_subscribe(monitor, &first, "here"));
    monitor_publish(monitor, &(MonitorEvent){.event = "rotated", .text = "one"});
    CHECK_OK(monitor_subscribe(monitor, &second, "here"));
    monitor_publish(monitor, &(MonitorEvent){.event = "paused", .text = "two"});
    CHECK_EQ(first.n, 3U);
    CHECK_EQ(second.n, 2U);
    CHECK_STREQ(first.heard[0], "ready");
    CHECK_STREQ(first.heard[1], "rotated");
    CHECK_STREQ(second.heard[0], "ready");
    CHECK_STREQ(second.heard[1], "paused");
}

TEST(dropped_events_are_counted_and_reported_before_the_next_event) {
    _cleanup_(monitor_freep) Monitor *monitor = NULL;
    Call slow = {}, other = {};

    CHECK_OK(monitor_new(&monitor));
    CHECK_OK(monitor_subscribe(monitor, &slow, "here"));
    CHECK_OK(monitor_subscribe(monitor, &other, "here"));
    slow.is_full = true;
    for (unsigned i = 0; i < 5; i++)
        monitor_publish(monitor, &(MonitorEvent){.event = "lost", .text = "some"});
    CHECK_EQ(slow.n, 1U);
    CHECK_EQ(other.n, 6U);
    slow.is_full = false;
    monitor_publish(monitor, &(MonitorEvent){.event = "rotated", .text = "one"});
    CHECK_EQ(slow.n, 3U);
    CHECK_STREQ(slow.heard[1], "dropped");
    CHECK_EQ(slow.counts[1], 5);
    CHECK_STREQ(slow.heard[2], "rotated");
    monitor_publish(monitor, &(MonitorEvent){.event = "paused", .text = "two"});
    CHECK_EQ(slow.n, 4U);
    CHECK_STREQ(other.heard[7], "paused");
}

TEST(a_client_that_leaves_gets_no_more_events) {
    _cleanup_(monitor_freep) Monitor *monitor = NULL;
    Call first = {}, second = {};

    CHECK_OK(monitor_new(&monitor));
    CHECK_OK(monitor_subscribe(monitor, &first, "here"));
    CHECK_OK(monitor_subscribe(monitor, &second, "here"));
    first.on_gone(first.userdata);
    monitor_publish(monitor, &(MonitorEvent){.event = "paused", .text = "two"});
    CHECK_EQ(first.n, 1U);
    CHECK_EQ(second.n, 2U);
}

TEST_MAIN()
