/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/ring/loss.h"

#include "capture/open/target.h"
#include "make-sampler.h"

/* The losses that the kernel reports, in records and figures made by hand. */

static void put_words(Buffer *out, uint32_t type, const uint64_t *words, size_t n) {
    buffer_u32(out, type, false);
    buffer_u16(out, 0, false);
    buffer_u16(out, (uint16_t)(8 + n * 8), false);
    for (size_t i = 0; i < n; i++)
        buffer_u64(out, words[i], false);
}

static void put_throttle(Buffer *out, bool ends, uint64_t time_ns, uint64_t id) {
    put_words(out, ends ? PD_RECORD_UNTHROTTLE : PD_RECORD_THROTTLE, (uint64_t[]){time_ns, id, id},
              3);
}

typedef struct Made {
    RingSet set;
    Counter counters[2];
    CpuRing ring;
    Buffer records;
} Made;

static void noticed_done(Made *f) {
    buffer_done(&f->records);
}

#define MADE(f)                                                                                    \
    _cleanup_(noticed_done) Made f = {.set.ops = &cpu_target, .counters = {{.id = 7}, {.id = 9}}}; \
    f.ring = (CpuRing) {                                                                           \
        .set = &f.set, .counters = f.counters, .n_counters = 2                                     \
    }

TEST(throttled_time_is_summed_for_each_event) {
    MADE(f);

    put_throttle(&f.records, false, 1000, 7);
    put_throttle(&f.records, false, 1500, 9);
    put_words(&f.records, PD_RECORD_SAMPLE, (uint64_t[]){7}, 1);
    put_throttle(&f.records, true, 2000, 7);
    put_throttle(&f.records, true, 4000, 9);
    loss_notice(&f.ring, buffer_bytes(&f.records));
    CHECK_EQ(f.set.counts.throttles, 2ULL);
    CHECK_EQ(f.set.counts.throttled_ns, 1000ULL + 2500);
    CHECK(f.set.counts.throttled_at_ns > 0);
}

TEST(an_event_may_stay_throttled_over_batches) {
    MADE(f);

    put_throttle(&f.records, false, 1000, 7);
    loss_notice(&f.ring, buffer_bytes(&f.records));
    CHECK_EQ(f.set.counts.throttled_ns, 0ULL);
    buffer_clear(&f.records);
    put_throttle(&f.records, true, 3000, 7);
    put_throttle(&f.records, true, 5000, 7);
    loss_notice(&f.ring, buffer_bytes(&f.records));
    CHECK_EQ(f.set.counts.throttled_ns, 2000ULL);
}

TEST(an_unthrottle_without_a_throttle_counts_nothing) {
    MADE(f);

    put_throttle(&f.records, true, 1000, 7);
    put_throttle(&f.records, false, 900, 12345);
    put_throttle(&f.records, false, 3000, 9);
    put_throttle(&f.records, true, 2000, 9);
    loss_notice(&f.ring, buffer_bytes(&f.records));
    CHECK_EQ(f.set.counts.throttled_ns, 0ULL);
    CHECK_EQ(f.set.counts.throttles, 1ULL);
}

TEST(lost_records_are_counted_where_read_includes_older_losses) {
    MADE(f);

    put_words(&f.records, PD_RECORD_LOST, (uint64_t[]){9, 5}, 2);
    loss_notice(&f.ring, buffer_bytes(&f.records));
    CHECK_EQ(f.counters[1].lost, 0ULL);
    f.ring.lost_by_records = true;
    loss_notice(&f.ring, buffer_bytes(&f.records));
    CHECK_EQ(f.counters[1].lost, 5ULL);
    buffer_clear(&f.records);
    put_words(&f.records, PD_RECORD_LOST, (uint64_t[]){12345, 3}, 2);
    loss_notice(&f.ring, buffer_bytes(&f.records));
    CHECK_EQ(f.counters[0].lost, 3ULL);
}

static Bytes words(const uint64_t *w, size_t n) {
    return (Bytes){.data = (const uint8_t *)w, .size = n * sizeof(*w)};
}

TEST(every_read_format_is_parsed) {
    enum { TIMES = PD_FORMAT_TOTAL_TIME_ENABLED | PD_FORMAT_TOTAL_TIME_RUNNING };
    enum { ID = PD_FORMAT_ID, LOST = PD_FORMAT_LOST, GROUP = PD_FORMAT_GROUP };
    uint64_t lost = 0;

    CHECK_OK(loss_parse(LOST, words((uint64_t[]){1, 5}, 2), 7, &lost));
    CHECK_EQ(lost, 5ULL);
    CHECK_OK(loss_parse(ID | LOST, words((uint64_t[]){1, 7, 6}, 3), 7, &lost));
    CHECK_EQ(lost, 6ULL);
    CHECK_OK(loss_parse(TIMES | ID | LOST, words((uint64_t[]){1, 2, 3, 7, 8}, 5), 7, &lost));
    CHECK_EQ(lost, 8ULL);
    CHECK_OK(loss_parse(GROUP | ID | LOST, words((uint64_t[]){2, 1, 9, 4, 1, 7, 3}, 7), 7, &lost));
    CHECK_EQ(lost, 3ULL);
}

TEST(read_without_loss_figures_changes_nothing) {
    uint64_t lost = 42;

    CHECK_EQ(loss_parse(PD_FORMAT_ID, words((uint64_t[]){1, 7, 6}, 3), 7, &lost), -EBADMSG);
    CHECK_EQ(loss_parse(PD_FORMAT_ID | PD_FORMAT_LOST, words((uint64_t[]){1, 7}, 2), 7, &lost),
             -EBADMSG);
    CHECK_EQ(loss_parse(PD_FORMAT_ID | PD_FORMAT_LOST, words((uint64_t[]){1, 8, 1}, 3), 7, &lost),
             -EBADMSG);
    CHECK_EQ(loss_parse(PD_FORMAT_GROUP | PD_FORMAT_ID | PD_FORMAT_LOST,
                        words((uint64_t[]){UINT64_MAX, 1, 8, 1}, 4), 7, &lost),
             -EBADMSG);
    CHECK_EQ(lost, 42ULL);
}

TEST(tags_are_read_back_as_written) {
    Tag tag = {.kind = TAG_SAMPLES, .event = 3, .cpu = 17, .identity = 0x123456789abcdefULL}, back;
    uint8_t bytes[KEEPER_TAG_SIZE];

    snprintf(tag.name, sizeof(tag.name), "default");
    tag_encode(&tag, bytes);
    CHECK(tag_decode(bytes, &back));
    CHECK_EQ(back.kind, TAG_SAMPLES);
    CHECK_EQ(back.event, 3);
    CHECK_EQ(back.cpu, 17U);
    CHECK_EQ(back.identity, tag.identity);
    CHECK_STREQ(back.name, "default");
}

TEST(tags_of_other_programs_are_refused) {
    uint8_t bytes[KEEPER_TAG_SIZE] = {};
    Tag tag = {.kind = TAG_SIDE_BAND}, back;

    CHECK(!tag_decode(bytes, &back));
    tag_encode(&tag, bytes);
    CHECK(tag_decode(bytes, &back));
    bytes[4]++;
    CHECK(!tag_decode(bytes, &back));
    bytes[4]--;
    bytes[6] = 9;
    CHECK(!tag_decode(bytes, &back));
}

TEST_MAIN()
