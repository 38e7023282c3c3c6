/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "profile/intake/builder-private.h"

/*
 * Samples with values (perf record -e '{a,b}:S'): each value is a sample of its counter, and its
 * period is how far the counter went since the sample before.
 *
 * A counter begins at zero with `perf record`, so its first value is a period too. Segments and
 * streams of profd begin in the midst of a counter that may have run for days: there the first
 * value is only where the next period begins. The counter that took the sample still has the
 * period that the kernel wrote into the sample. Its value also shows whether the whole group began
 * within a sampling period of this sample, and then first values count as they do for perf.
 */

enum { VALUES_MAX = 4 << 20 /* as many as a recording may have ids */ };

/* 1: *ret_before is the value that the counter had before; 0: this one is its first. */
static int builder_value_replace(ProfileBuilder *builder, const PdReadValue *value,
                                 uint64_t *ret_before) {
    BuilderValue *row;
    uint32_t number;

    for (size_t probe = 0; (number = hash_index_next(&builder->by_value, value->id, &probe)) > 0;) {
        row = &builder->values[number - 1];
        if (row->id != value->id)
            continue;
        *ret_before = row->value;
        row->value = value->value;
        return 1;
    }
    if (builder->by_value.n >= VALUES_MAX)
        return 0;
    row = hash_index_append(&builder->by_value, value->id, &builder->values);
    if (!row)
        return -ENOMEM;
    *row = (BuilderValue){.id = value->id, .value = value->value};
    return 0;
}

/* How far the counter that took the sample went for it; 0: not known. */
static uint64_t builder_value_own_period(const PdSample *sample) {
    bool is_frequency = sample->event->attr.flags & PD_ATTR_FREQ;

    return sample->sample_type & PD_SAMPLE_PERIOD || !is_frequency ? sample->period : 0;
}

/* Whether everything before the sample is less than one period of the counter that took it. */
static bool builder_value_has_begun(const PdSample *sample, uint64_t own_period) {
    for (uint64_t i = 0; i < sample->read.n; i++) {
        PdReadValue value = pd_read_at(&sample->read, i);

        if (value.id == sample->id)
            return value.value < own_period || value.value - own_period < own_period;
    }
    return false;
}

int builder_values_begin(ProfileBuilder *builder, const PdSample *sample, BuilderFirst *ret) {
    int r = builder_read_recorder(builder);

    if (r < 0)
        return r;
    *ret = (BuilderFirst){.id = sample->id, .period = builder_value_own_period(sample)};
    ret->counts = !builder->is_of_profd || builder_value_has_begun(sample, ret->period);
    return 0;
}

int builder_value(ProfileBuilder *builder, const PdReadValue *value, const BuilderFirst *first,
                  uint64_t *ret_period) {
    uint64_t before = 0;
    int r = builder_value_replace(builder, value, &before);

    if (r < 0)
        return r;
    if (r > 0 || first->counts)
        *ret_period = value->value - before;
    else
        *ret_period = value->id == first->id ? first->period : 0;
    return 0;
}
