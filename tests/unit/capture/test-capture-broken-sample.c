/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/ring/broken-sample.h"

#include <linux/perf_event.h>

#include "perfdata/event/format.h"
#include "test.h"
#include "util/macro.h"

enum { PLAIN_ID = 7, CHAIN_ID = 8, FOREIGN_ID = 9 };

static const uint64_t plain_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_IP | PD_SAMPLE_TID |
                                   PD_SAMPLE_TIME | PD_SAMPLE_CPU | PD_SAMPLE_CGROUP;

static int add(PdEvents *events, uint32_t type, uint64_t config, uint64_t sample_type,
               uint64_t id) {
    PdAttr attr = {.type = type, .config = config, .sample_type = sample_type};
    PdEvent *event;

    return pd_events_add(events, &attr, (Bytes){}, &id, 1, &event);
}

static int make_events(PdEvents **ret) {
    int r = pd_events_new(ret);

    if (r == 0)
        r = add(*ret, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, plain_type, PLAIN_ID);
    if (r == 0)
        r = add(*ret, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS,
                plain_type | PD_SAMPLE_CALLCHAIN, CHAIN_ID);
    return r;
}

/* A sample of that many words, the first of which is its id, and of callchain length n. */
static void put_sample(Buffer *out, uint64_t id, size_t words, uint64_t n) {
    const uint64_t body[16] = {id, 0x1000, 5, 99, 0, n};

    buffer_u32(out, PD_RECORD_SAMPLE, false);
    buffer_u16(out, 2, false);
    buffer_u16(out, (uint16_t)(8 + 8 * words), false);
    buffer_append(out, body, 8 * words);
}

static void put_lost(Buffer *out) {
    buffer_u32(out, PD_RECORD_LOST, false);
    buffer_u16(out, 0, false);
    buffer_u16(out, 24, false);
    buffer_zero(out, 16);
}

TEST(samples_with_the_id_of_their_event_pass) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    _cleanup_(buffer_done) Buffer in = {}, out = {};

    CHECK_OK(make_events(&events));
    put_sample(&in, PLAIN_ID, 6, 0);
    put_lost(&in);
    put_sample(&in, CHAIN_ID, 9, 2);
    put_sample(&in, CHAIN_ID, 7, 0);
    CHECK_EQ(broken_samples_remove(events, buffer_bytes(&in), &out), 0);
    CHECK(bytes_equal(buffer_bytes(&in), buffer_bytes(&out)));
}

TEST(samples_of_other_sessions_and_of_wrong_size_are_dropped) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    _cleanup_(buffer_done) Buffer in = {}, out = {}, wanted = {};

    CHECK_OK(make_events(&events));
    put_sample(&in, FOREIGN_ID, 6, 0);
    put_sample(&in, PLAIN_ID, 6, 0);
    put_sample(&in, PLAIN_ID, 10, 0);
    put_sample(&in, CHAIN_ID, 6, 0);
    put_sample(&in, CHAIN_ID, 7, 3);
    put_lost(&in);
    put_sample(&in, FOREIGN_ID, 9, 2);
    put_sample(&wanted, PLAIN_ID, 6, 0);
    put_lost(&wanted);
    CHECK_EQ(broken_samples_remove(events, buffer_bytes(&in), &out), 5);
    CHECK(bytes_equal(buffer_bytes(&wanted), buffer_bytes(&out)));
}

TEST(malformed_records_end_the_check) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    _cleanup_(buffer_done) Buffer in = {}, out = {};
    size_t whole;

    CHECK_OK(make_events(&events));
    put_sample(&in, PLAIN_ID, 6, 0);
    whole = in.size;
    buffer_zero(&in, 16);
    CHECK_EQ(broken_samples_remove(events, buffer_bytes(&in), &out), 0);
    CHECK_EQ(out.size, whole);
}

TEST(only_software_events_of_the_kernel_are_checked) {
    /* clang-format off */
    static const struct { uint32_t type; uint64_t config; bool due; } rows[] = {
        { PERF_TYPE_SOFTWARE,   PERF_COUNT_SW_CPU_CLOCK,        false },
        { PERF_TYPE_SOFTWARE,   PERF_COUNT_SW_TASK_CLOCK,       false },
        { PERF_TYPE_SOFTWARE,   PERF_COUNT_SW_DUMMY,            false },
        { PERF_TYPE_SOFTWARE,   PERF_COUNT_SW_PAGE_FAULTS,      true  },
        { PERF_TYPE_SOFTWARE,   PERF_COUNT_SW_CONTEXT_SWITCHES, true  },
        { PERF_TYPE_HARDWARE,   2,                              false },
        { PERF_TYPE_TRACEPOINT, 2,                              false },
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(pd_events_freep) PdEvents *events = NULL;

        CHECK_OK(pd_events_new(&events));
        CHECK_OK(add(events, rows[i].type, rows[i].config, plain_type, 1));
        CHECK_EQ(broken_samples_are_possible(events), rows[i].due);
    }
}

TEST_MAIN()
