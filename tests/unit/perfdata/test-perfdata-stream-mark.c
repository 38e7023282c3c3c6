/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record/stream-mark.h"

#include "test.h"

/* Watermarks and gaps in a stream, and records that look like them. */

static PdRecord written(Buffer *out, const PdStreamMark *mark) {
    pd_stream_mark_write(out, mark);
    if (buffer_error(out) < 0)
        abort();
    return pd_record_at(out->data, false);
}

TEST(a_watermark_is_read_as_it_was_written) {
    const PdStreamMark mark = {.time = 123456789, .real_offset = 1790000000ULL * 1000000000};
    _cleanup_(buffer_done) Buffer out = {};
    PdRecord record = written(&out, &mark);
    PdStreamMark got;

    CHECK_EQ(record.size, out.size);
    CHECK(pd_stream_mark_read(&record, &got));
    CHECK(!got.is_gap);
    CHECK_EQ(got.time, mark.time);
    CHECK_EQ(got.real_offset, mark.real_offset);
}

TEST(a_gap_is_read_as_it_was_written) {
    const PdStreamMark mark = {
        .is_gap = true,
        .gap = {.from_ns = 5, .to_ns = 7, .cpu = 3, .reason = PD_GAP_DELETED},
        .real_offset = (uint64_t)-9,
    };
    _cleanup_(buffer_done) Buffer out = {};
    PdRecord record = written(&out, &mark);
    PdStreamMark got;

    CHECK(pd_stream_mark_read(&record, &got));
    CHECK(got.is_gap);
    CHECK_EQ(got.gap.from_ns, 5);
    CHECK_EQ(got.gap.to_ns, 7);
    CHECK_EQ(got.gap.cpu, 3);
    CHECK_EQ(got.gap.reason, PD_GAP_DELETED);
    CHECK_EQ(got.real_offset, (uint64_t)-9);
}

TEST(a_reason_of_a_later_version_is_unknown) {
    const PdStreamMark mark = {.is_gap = true, .gap = {.reason = (PdGapReason)PD_GAP_REASONS}};
    _cleanup_(buffer_done) Buffer out = {};
    PdRecord record = written(&out, &mark);
    PdStreamMark got;

    CHECK(pd_stream_mark_read(&record, &got));
    CHECK_EQ(got.gap.reason, PD_GAP_UNKNOWN);
}

TEST(other_records_are_no_marks) {
    const PdStreamMark mark = {.time = 1};
    _cleanup_(buffer_done) Buffer out = {};
    PdRecord record = written(&out, &mark);
    PdStreamMark got = {.time = 42};

    record.size--;
    CHECK(!pd_stream_mark_read(&record, &got));
    record.size++;
    record.type = PD_RECORD_COMM;
    CHECK(!pd_stream_mark_read(&record, &got));
    record.type = PD_RECORD_EVENT_TYPE;
    out.data[16] ^= 1; /* the name */
    CHECK(!pd_stream_mark_read(&record, &got));
    out.data[16] ^= 1;
    out.data[8] ^= 1; /* the id */
    CHECK(!pd_stream_mark_read(&record, &got));
    CHECK_EQ(got.time, 42);
}

TEST_MAIN()
