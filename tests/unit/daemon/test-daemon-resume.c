/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/resume.h"

#include "perfdata/event/format.h"
#include "perfdata/event/record-view.h"

#include "test.h"

/* What is written already, of the arena and of the rings that a recorder takes over. */

enum { ID = 7, CPU = 3 };

typedef struct Made {
    Buffer bytes;
    PdEvents *events;
    Resume *resume;
} Made;

static void made_done(Made *made) {
    buffer_done(&made->bytes);
    pd_events_free(made->events);
    resume_free(made->resume);
}

static Made made_begin(void) {
    PdAttr attr = {.sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TID | PD_SAMPLE_TIME};
    uint64_t id = ID;
    PdEvent *event;
    Made made = {};

    if (pd_events_new(&made.events) < 0 ||
        pd_events_add(made.events, &attr, (Bytes){}, &id, 1, &event) < 0 ||
        resume_new(&made.resume) < 0)
        abort();
    return made;
}

/* Samples at these times, ended by 0. */
static Bytes samples(Made *made, const uint64_t *times) {
    buffer_clear(&made->bytes);
    for (; *times; times++) {
        buffer_u32(&made->bytes, PD_RECORD_SAMPLE, false);
        buffer_u32(&made->bytes, 32U << 16, false);
        buffer_u64(&made->bytes, ID, false);
        buffer_u64(&made->bytes, 1, false);
        buffer_u64(&made->bytes, *times, false);
    }
    return buffer_bytes(&made->bytes);
}

#define SAMPLES(made, ...) samples(made, (const uint64_t[]){__VA_ARGS__, 0})

/* The times of the records, as one number: 10 and 20 are 1020. */
static uint64_t times(Bytes records) {
    uint64_t all = 0;
    PdRecord record;

    while (pd_records_next(&records, &record))
        all = all * 100 + load_u64(record.data + 24, false);
    return all;
}

static uint64_t kept(Made *made, Bytes records) {
    return times(resume_skip_kept(made->resume, made->events, CPU, records));
}

static uint64_t ring(Made *made, Bytes records) {
    return times(resume_skip(made->resume, made->events, CPU, records));
}

/* As if the segments ended so. */
static void write_up_to(Made *made, Bytes records) {
    (void)kept(made, records);
    resume_end_kept(made->resume);
}

TEST(what_the_segments_have_is_skipped_and_the_ring_goes_on_behind_the_arena) {
    _cleanup_(made_done) Made made = made_begin();

    write_up_to(&made, SAMPLES(&made, 30));
    CHECK_EQ(kept(&made, SAMPLES(&made, 10, 20)), 0ULL);
    CHECK_EQ(kept(&made, SAMPLES(&made, 30, 40)), 40ULL);
    CHECK_EQ(kept(&made, SAMPLES(&made, 50)), 50ULL);
    resume_end_kept(made.resume);
    /* Committed to the arena and not given back yet. */
    CHECK_EQ(ring(&made, SAMPLES(&made, 50, 60)), 60ULL);
    CHECK_EQ(ring(&made, SAMPLES(&made, 70)), 70ULL);
}

TEST(an_arena_that_is_written_leaves_the_ring_to_the_segments) {
    _cleanup_(made_done) Made made = made_begin();

    write_up_to(&made, SAMPLES(&made, 30));
    CHECK_EQ(kept(&made, SAMPLES(&made, 10, 20)), 0ULL);
    resume_end_kept(made.resume);
    CHECK_EQ(ring(&made, SAMPLES(&made, 20, 30, 40)), 40ULL);
}

TEST(an_arena_that_ends_with_the_segments_leaves_nothing) {
    _cleanup_(made_done) Made made = made_begin();

    write_up_to(&made, SAMPLES(&made, 30));
    CHECK_EQ(kept(&made, SAMPLES(&made, 20, 30)), 0ULL);
    resume_end_kept(made.resume);
    CHECK_EQ(ring(&made, SAMPLES(&made, 30, 40)), 40ULL);
}

TEST(an_arena_that_begins_behind_the_segments_is_taken_whole) {
    _cleanup_(made_done) Made made = made_begin();

    write_up_to(&made, SAMPLES(&made, 30));
    CHECK_EQ(kept(&made, SAMPLES(&made, 40, 50)), 4050ULL);
    resume_end_kept(made.resume);
    CHECK_EQ(ring(&made, SAMPLES(&made, 60)), 60ULL);
}

TEST(without_any_segment_all_of_the_arena_is_taken) {
    _cleanup_(made_done) Made made = made_begin();

    CHECK_EQ(kept(&made, SAMPLES(&made, 10, 20)), 1020ULL);
    resume_end_kept(made.resume);
    CHECK_EQ(ring(&made, SAMPLES(&made, 10, 20, 30)), 30ULL);
}

TEST(a_cpu_that_cannot_be_does_no_harm) {
    _cleanup_(made_done) Made made = made_begin();

    CHECK_EQ(times(resume_skip_kept(made.resume, made.events, UINT32_MAX, SAMPLES(&made, 10))),
             10ULL);
    resume_end_kept(made.resume);
    CHECK_EQ(ring(&made, SAMPLES(&made, 10)), 10ULL);
}

TEST_MAIN()
