/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/dropped.h"

#include "perfdata/event/format.h"
#include "test.h"

/* A batch as a session gathers it: samples of several CPUs, with side-band between them. */

typedef struct Sample {
    uint32_t type;
    uint16_t misc, size;
    uint64_t id;
    uint32_t pid, tid;
    uint64_t time;
    uint32_t cpu, reserved;
} Sample;

static PdEvents *make_events(uint64_t sample_type) {
    PdAttr attr = {.type = PD_TYPE_SOFTWARE, .sample_type = sample_type};
    const uint64_t id = 7;
    PdEvents *events = NULL;
    PdEvent *event;

    if (pd_events_new(&events) < 0 ||
        pd_events_add(events, &attr, (Bytes){}, NULL, 0, &event) < 0 ||
        pd_events_add_ids(events, event, &id, 1) < 0)
        return pd_events_free(events);
    return events;
}

static void add_sample(StoreBatch *batch, uint32_t cpu) {
    Sample sample = {.type = PD_RECORD_SAMPLE, .size = sizeof(sample), .id = 7, .cpu = cpu};

    buffer_append(&batch->records, &sample, sizeof(sample));
    batch->samples++;
}

static uint64_t dropped_of(const Dropped *dropped, unsigned cpu) {
    for (size_t i = 0; i < dropped->n; i++)
        if (dropped->cpus[i].cpu == cpu)
            return dropped->cpus[i].samples;
    return 0;
}

TEST(each_sample_of_a_shared_batch_counts_for_its_own_cpu) {
    PdEvents *events =
        make_events(PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_CPU);
    StoreBatch batch = {.kind = STORE_SAMPLES, .cpu = 0};
    Dropped dropped = {};

    for (unsigned i = 0; i < 30; i++)
        add_sample(&batch, i % 3 == 0 ? 0 : 5);
    CHECK(events);
    dropped_add_batch(&dropped, events, &batch);
    CHECK_EQ(dropped.n, (size_t)2);
    CHECK_EQ(dropped_of(&dropped, 0), 10u);
    CHECK_EQ(dropped_of(&dropped, 5), 20u);
    dropped_done(&dropped);
    buffer_done(&batch.records);
    pd_events_free(events);
}

TEST(samples_without_a_cpu_count_for_the_cpu_of_the_batch) {
    PdEvents *events = make_events(PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TID | PD_SAMPLE_TIME);
    StoreBatch batch = {.kind = STORE_SAMPLES, .cpu = 3};
    Dropped dropped = {};

    add_sample(&batch, 5);
    batch.samples += 2; /* of which the records are not there for want of memory */
    CHECK(events);
    dropped_add_batch(&dropped, events, &batch);
    CHECK_EQ(dropped.n, (size_t)1);
    CHECK_EQ(dropped_of(&dropped, 3), 3u);
    dropped_done(&dropped);
    buffer_done(&batch.records);
    pd_events_free(events);
}

TEST(a_batch_without_samples_drops_none) {
    PdEvents *events = make_events(PD_SAMPLE_IDENTIFIER);
    StoreBatch batch = {.kind = STORE_SIDE_BAND};
    Dropped dropped = {};

    CHECK(events);
    dropped_add_batch(&dropped, events, &batch);
    dropped_add(&dropped, 1, 0);
    CHECK_EQ(dropped.n, (size_t)0);
    pd_events_free(events);
}

TEST_MAIN()
