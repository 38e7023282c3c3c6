/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/ring/broken-sample.h"

#include <linux/perf_event.h>

#include "perfdata/record/record.h"
#include "perfdata/record/sample.h"

/*
 * Where one page fault or context switch is a sample of several events, kernels from 6.2 on prepare
 * it once and pass the same preparation to each: every event but the first gets the id of the first
 * (which may belong to another session or to a perf record beside us), a size that counts the
 * fields of the first, and arbitrary bytes of the ring behind what was written. Linux 6.4 fixed
 * this for tracepoints, but not for events that the kernel counts by itself.
 *
 * perf refuses a recording at the first such sample, so they are removed: samples with an id that
 * no event of the session has, or a size other than that of the event's fields. Clocks have a
 * preparation of their own, so recordings without other software events are not checked.
 */

static bool broken_sample_is_confused(const PdAttr *a) {
    return a->type == PERF_TYPE_SOFTWARE && a->config != PERF_COUNT_SW_CPU_CLOCK &&
           a->config != PERF_COUNT_SW_TASK_CLOCK && a->config != PERF_COUNT_SW_DUMMY &&
           a->config != PERF_COUNT_SW_BPF_OUTPUT;
}

/* The side-band event among them does no harm. */
bool broken_samples_are_possible(const PdEvents *events) {
    for (size_t i = 0; i < pd_events_count(events); i++)
        if (broken_sample_is_confused(&pd_events_at(events, i)->attr))
            return true;
    return false;
}

static bool broken_sample_is_sound(const PdEvents *events, const PdRecord *record) {
    const PdEvent *event;

    if (record->type != PD_RECORD_SAMPLE)
        return true;
    if (record->size < PD_RECORD_HEADER_SIZE + sizeof(uint64_t))
        return false;
    /* Every sample of ours begins with the identifier. */
    event = pd_events_by_id(events, load_u64(record->data + PD_RECORD_HEADER_SIZE, false));
    return event && pd_sample_is_whole(record, event);
}

size_t broken_samples_remove(const PdEvents *events, Bytes records, Buffer *out) {
    size_t left_out = 0, from = 0, at = 0;

    while (at < records.size) {
        PdRecord record = pd_record_at(records.data + at, false);

        if (!pd_record_is_sane(&record) || record.size > records.size - at)
            break;
        if (!broken_sample_is_sound(events, &record)) {
            buffer_append(out, records.data + from, at - from);
            from = at + record.size;
            left_out++;
        }
        at += record.size;
    }
    buffer_append(out, records.data + from, at - from);
    return left_out;
}
