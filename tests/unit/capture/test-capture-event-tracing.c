/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/event/event-tracing.h"

#include "make-event-host.h"
#include "perfdata/tracing/tracing.h"
#include "test.h"

static char error[2048];

static int build(const char *text, Buffer *out) {
    _cleanup_(event_list_freep) EventList *list = NULL;
    _cleanup_(made_host_done) MadeHost m = {};
    int r = made_host_init(&m);

    if (r == 0)
        r = event_list_parse(text, &m.host, &list, error, sizeof(error));
    return r < 0 ? r : event_tracing(list, &m.host, out);
}

TEST(without_a_tracepoint_there_is_no_tracing_data) {
    _cleanup_(buffer_done) Buffer out = {};

    CHECK_OK(build("cycles,cs", &out));
    CHECK_EQ(out.size, 0);
}

TEST(tracepoints_are_named_by_the_tracing_data) {
    _cleanup_(pd_tracing_freep) PdTracing *tracing = NULL;
    _cleanup_(buffer_done) Buffer out = {};

    CHECK_OK(build("block:*,cs,sched:*,sched:sched_switch:u,ftrace:function", &out));
    CHECK_OK(pd_tracing_new(buffer_bytes(&out), &tracing));
    CHECK_STREQ(pd_tracing_name(tracing, 316), "sched:sched_switch");
    CHECK_STREQ(pd_tracing_name(tracing, 317), "sched:sched_wakeup");
    CHECK_STREQ(pd_tracing_name(tracing, 400), "block:block_rq_issue");
    CHECK_STREQ(pd_tracing_name(tracing, 1), "ftrace:function");
}

TEST(raw_data_can_be_decoded_with_the_tracing_data) {
    _cleanup_(pd_tracing_freep) PdTracing *tracing = NULL;
    _cleanup_(buffer_done) Buffer out = {}, text = {};
    const uint32_t raw[] = {0, 0, 77};
    Fields f = fields_to(&text, FIELDS_TEXT);

    CHECK_OK(build("sched:sched_switch", &out));
    CHECK_OK(pd_tracing_new(buffer_bytes(&out), &tracing));
    fields_begin_object(&f, NULL);
    pd_tracing_describe(tracing, 316, (Bytes){.data = (const uint8_t *)raw, .size = sizeof(raw)},
                        false, &f);
    fields_end_object(&f);
    buffer_append(&text, "", 1);
    CHECK(strstr((const char *)text.data, "pid 77"));
}

TEST(a_vanished_tracepoint_leaves_no_partial_tracing_data) {
    _cleanup_(event_list_freep) EventList *list = NULL;
    _cleanup_(made_host_done) MadeHost m = {};
    _cleanup_(buffer_done) Buffer out = {};
    char path[256];

    CHECK_OK(made_host_init(&m));
    CHECK_OK(event_list_parse("sched:*", &m.host, &list, error, sizeof(error)));
    snprintf(path, sizeof(path), "%s/tracing/events/sched/sched_wakeup/format", m.root);
    CHECK_OK(unlink(path));
    CHECK_EQ(event_tracing(list, &m.host, &out), -ENOENT);
    CHECK_EQ(out.size, 0);
}

TEST_MAIN()
