/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "profile/intake/builder-private.h"

/*
 * From a SAMPLE record to a cell: its stack is completed, a sample with values becomes one of each
 * counter, and where a limit is reached everything is folded once before the sample is counted.
 */

/* Adds the sample to its cell. 1, 0 where a filter leaves it out, or -ENOSPC. */
static int builder_try(ProfileBuilder *builder, const PdRecord *record, const PdSample *sample,
                       uint32_t event) {
    ProfileCell cell = {.samples = 1, .period = sample->period};
    int r = builder_label(builder, sample, event, &cell.label);

    if (r <= 0)
        return r;
    r = builder_stack(builder, record, sample, &cell.stack);
    if (r >= 0)
        r = builder_add_cell(builder, &cell);
    return r < 0 ? r : 1;
}

/* The stack alone is larger than all that may be kept. */
static int builder_add_to_other(ProfileBuilder *builder, const PdSample *sample, uint32_t event) {
    ProfileCell cell = {.samples = 1, .period = sample->period};
    uint32_t frame;
    int r = builder_add_other_frame(builder->profile->frames, &frame);

    if (r >= 0)
        r = builder_label(builder, sample, event, &cell.label);
    if (r <= 0)
        return r;
    r = stack_tree_add(builder->profile->stacks, STACK_ROOT, frame, &cell.stack);
    if (r >= 0)
        r = builder_add_cell(builder, &cell);
    if (r < 0)
        return r;
    builder->profile->folded++;
    return 1;
}

static int builder_add(ProfileBuilder *builder, const PdRecord *record, const PdSample *sample,
                       uint32_t event) {
    int r = builder_try(builder, record, sample, event);

    if (r != -ENOSPC)
        return r;
    r = builder_fold(builder);
    if (r < 0)
        return r;
    r = builder_try(builder, record, sample, event);
    if (r != -ENOSPC)
        return r;
    builder->may_exceed = true;
    r = builder_add_to_other(builder, sample, event);
    builder->may_exceed = false;
    return r;
}

static int builder_count(ProfileBuilder *builder, const PdRecord *record, const PdSample *sample,
                         const PdEvent *event) {
    BuilderEvent *row = builder_event(builder, event);
    uint32_t number;
    int r;

    if (!row)
        return -ENOMEM;
    if (!row->is_wanted) {
        builder->profile->left_out++;
        return 0;
    }
    r = builder_event_number(builder, event, row, &number);
    if (r >= 0)
        r = builder_add(builder, record, sample, number);
    if (r == 0)
        builder->profile->left_out++;
    if (r <= 0)
        return r;
    builder->profile->samples++;
    builder->profile->events[number].samples++;
    builder->profile->events[number].period += sample->period;
    return 0;
}

/* A sample with values is one of each counter that went on. */
static int builder_count_values(ProfileBuilder *builder, const PdRecord *record, PdSample *sample) {
    const PdEvents *events = pd_reader_events(builder->reader);
    BuilderFirst first;
    int r = builder_values_begin(builder, sample, &first);

    for (uint64_t i = 0; r >= 0 && i < sample->read.n; i++) {
        PdReadValue value = pd_read_at(&sample->read, i);
        const PdEvent *event = pd_events_by_id(events, value.id);

        if (!event)
            continue;
        r = builder_value(builder, &value, &first, &sample->period);
        if (r >= 0 && sample->period > 0)
            r = builder_count(builder, record, sample, event);
    }
    return r;
}

/* The sample has all of its chain. */
static int builder_count_whole(ProfileBuilder *builder, const PdRecord *record, PdSample *sample) {
    if ((sample->sample_type & PD_SAMPLE_READ) && (sample->read.format & PD_FORMAT_ID))
        return builder_count_values(builder, record, sample);
    return builder_count(builder, record, sample, sample->event);
}

/* Counts a sample that waited, with its user part or without it. */
static int builder_count_deferred(ProfileBuilder *builder, BuilderDeferred *deferred,
                                  const PdCallchain *user) {
    PdRecord record = {.type = PD_RECORD_SAMPLE,
                       .misc = deferred->misc,
                       .swap = deferred->swap,
                       .size = deferred->size,
                       .data = deferred->record};
    PdSample sample;
    int r = 0;

    if (pd_sample_parse(&record, deferred->event, &sample) == 0) {
        builder->has_exact = false;
        builder_deferred_join(builder, &sample, user);
        r = builder_count_whole(builder, &record, &sample);
    }
    free(deferred->record);
    return r;
}

int builder_flush_deferred(ProfileBuilder *builder) {
    BuilderDeferred deferred;
    int r = 0;

    while (r >= 0 && builder_deferred_take(builder, NULL, 0, &deferred))
        r = builder_count_deferred(builder, &deferred, NULL);
    return r;
}

int builder_take_deferred(ProfileBuilder *builder, const PdRecord *record, const PdStamp *stamp) {
    BuilderDeferred deferred;
    PdBody body;
    int r = 0;

    if (!stamp->event || pd_record_parse(record, stamp->event, &body) < 0) {
        builder->profile->broken++;
        return 0;
    }
    while (r >= 0 && builder_deferred_take(builder, &body.callchain_deferred.cookie,
                                           stamp->has_tid ? stamp->tid : UINT32_MAX, &deferred))
        r = builder_count_deferred(builder, &deferred, &body.callchain_deferred.chain);
    return r;
}

int builder_take_sample(ProfileBuilder *builder, const PdRecord *record, const PdStamp *stamp) {
    BuilderDeferred oldest;
    PdSample sample;
    int r = 0;

    if (!stamp->event || pd_sample_parse(record, stamp->event, &sample) < 0) {
        builder->profile->broken++;
        return 0;
    }
    if (builder_deferred_is_full(builder) && builder_deferred_take(builder, NULL, 0, &oldest))
        r = builder_count_deferred(builder, &oldest, NULL);
    if (r >= 0)
        r = builder_defer(builder, record, &sample);
    if (r != 0)
        return MIN(r, 0);
    r = builder_user(builder, record, &sample);
    return r < 0 ? r : builder_count_whole(builder, record, &sample);
}
