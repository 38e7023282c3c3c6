/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/summary.h"

#include "test.h"

/* Records by hand, stamped as the reader would. */

typedef struct Hand {
    uint8_t bytes[64];
    PdRecord record;
} Hand;

static void hand(Hand *h, uint32_t type, const uint64_t *words, size_t n, bool swap) {
    *h = (Hand){};
    store_u32(h->bytes, type, swap);
    store_u16(h->bytes + 6, (uint16_t)(8 + 8 * n), swap);
    for (size_t i = 0; i < n; i++)
        store_u64(h->bytes + 8 + 8 * i, words[i], swap);
    h->record =
        (PdRecord){.type = type, .swap = swap, .size = (uint32_t)(8 + 8 * n), .data = h->bytes};
}

TEST(types_are_counted_in_ascending_order) {
    static const uint32_t types[] = {9, 3, 70000, 9, 1, 68, 3, 9};
    _cleanup_(summary_done) Summary s = {};
    Hand h;

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        hand(&h, types[i], NULL, 0, false);
        CHECK_OK(summary_add(&s, &h.record, &(PdStamp){}));
    }
    CHECK_EQ(s.records, 8U);
    CHECK_EQ(s.n_types, 5U);
    for (size_t i = 1; i < s.n_types; i++)
        CHECK(s.types[i - 1].type < s.types[i].type);
    CHECK_EQ(s.types[2].n, 3U);
    CHECK_EQ(s.samples, 3U);
    CHECK_EQ(s.unmatched_samples, 3U);
}

TEST(the_period_comes_from_the_sample_in_either_byte_order) {
    PdEvent event = {.index = 2,
                     .attr = {.sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_IP |
                                             PD_SAMPLE_PERIOD | PD_SAMPLE_CALLCHAIN,
                              .sample_period = 7}};
    PdStamp stamp = {.event = &event};

    for (int swap = 0; swap < 2; swap++) {
        _cleanup_(summary_done) Summary s = {};
        Hand h;

        hand(&h, PD_RECORD_SAMPLE, (uint64_t[]){1, 2, 250000, 0}, 4, swap);
        CHECK_OK(summary_add(&s, &h.record, &stamp));
        CHECK_EQ(s.n_events, 3U);
        CHECK_EQ(s.events[2].period_sum, 250000U);
        hand(&h, PD_RECORD_SAMPLE, (uint64_t[]){1, 2}, 2, swap);
        CHECK_OK(summary_add(&s, &h.record, &stamp));
        CHECK_EQ(s.events[2].period_sum, 250000U);
    }
}

TEST(the_period_comes_from_the_attr_if_the_sample_has_none) {
    PdEvent event = {.attr = {.sample_type = PD_SAMPLE_IP, .sample_period = 7}};
    _cleanup_(summary_done) Summary s = {};
    Hand h;

    hand(&h, PD_RECORD_SAMPLE, (uint64_t[]){1}, 1, false);
    for (int i = 0; i < 3; i++)
        CHECK_OK(summary_add(&s, &h.record, &(PdStamp){.event = &event}));
    CHECK_EQ(s.events[0].period_sum, 21U);
}

TEST(sums_stop_at_their_maximum) {
    _cleanup_(summary_done) Summary s = {};
    Hand h;

    hand(&h, PD_RECORD_LOST, (uint64_t[]){1, UINT64_MAX - 1}, 2, false);
    CHECK_OK(summary_add(&s, &h.record, &(PdStamp){}));
    CHECK_EQ(s.lost_events, UINT64_MAX - 1);
    CHECK_OK(summary_add(&s, &h.record, &(PdStamp){}));
    CHECK_EQ(s.lost_events, UINT64_MAX);
}

TEST(processes_are_counted_once_each) {
    _cleanup_(summary_done) Summary s = {};
    Hand h;

    hand(&h, PD_RECORD_SAMPLE, NULL, 0, false);
    for (uint32_t i = 0; i < 10000; i++)
        CHECK_OK(
            summary_add(&s, &h.record, &(PdStamp){.has_tid = true, .pid = i / 4, .tid = i * 3}));
    CHECK_OK(summary_add(&s, &h.record, &(PdStamp){.has_tid = true, .pid = -1U, .tid = -1U}));
    CHECK_EQ(s.pids.index.n, 2501U);
    CHECK_EQ(s.tids.index.n, 10001U);
}

TEST(the_time_span_covers_samples_in_any_order) {
    static const uint64_t times[] = {50, 20, 90, 30};
    _cleanup_(summary_done) Summary s = {};
    Hand h;

    hand(&h, PD_RECORD_COMM, NULL, 0, false);
    CHECK_OK(summary_add(&s, &h.record, &(PdStamp){.has_time = true, .time = 1}));
    CHECK(!s.has_time);
    hand(&h, PD_RECORD_SAMPLE, NULL, 0, false);
    for (size_t i = 0; i < ARRAY_SIZE(times); i++)
        CHECK_OK(summary_add(&s, &h.record, &(PdStamp){.has_time = true, .time = times[i]}));
    CHECK_EQ(s.first_time, 20U);
    CHECK_EQ(s.last_time, 90U);
}

TEST_MAIN()
