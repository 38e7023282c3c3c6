/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Counters for `info`. They must handle gigabytes of samples, so a sample is never parsed: its
 * stamp has process and time, and the offset of the period depends only on the event. Everything
 * that grows with the number of distinct types or processes is bounded, whatever a file claims.
 */

enum {
    TYPES_MAX = 65536, /* reached by hostile files only; real ones have some twenty */
    /* PID_MAX_LIMIT of the kernel: no real recording has more processes. */
    SET_MAX = 4 * 1024 * 1024,
};

static SummaryType *summary_type_row(Summary *s, uint32_t type) {
    size_t at = 0;
    SummaryType *p;

    for (size_t n = s->n_types; n > 0;) {
        size_t half = n / 2;

        if (s->types[at + half].type < type) {
            at += half + 1;
            n -= half + 1;
        } else
            n = half;
    }
    if (at < s->n_types && s->types[at].type == type)
        return &s->types[at];
    if (s->n_types >= TYPES_MAX)
        return NULL;
    p = reallocarray(s->types, s->n_types + 1, sizeof(*p));
    if (!p)
        return NULL;
    s->types = p;
    memmove(p + at + 1, p + at, (s->n_types - at) * sizeof(*p));
    p[at] = (SummaryType){.type = type};
    s->n_types++;
    return &p[at];
}

static SummaryEvent *summary_event_row(Summary *s, uint32_t index) {
    if (index >= s->n_events) {
        SummaryEvent *p = reallocarray(s->events, (size_t)index + 1, sizeof(*p));

        if (!p)
            return NULL;
        memset(p + s->n_events, 0, ((size_t)index + 1 - s->n_events) * sizeof(*p));
        s->events = p;
        s->n_events = (size_t)index + 1;
    }
    return &s->events[index];
}

static int summary_set_add(SummarySet *set, uint32_t v) {
    uint32_t number, *item;

    for (size_t probe = 0; (number = hash_index_next(&set->index, v, &probe)) > 0;)
        if (set->items[number - 1] == v)
            return 0;
    if (set->index.n >= SET_MAX)
        return 0;
    item = hash_index_append(&set->index, v, &set->items);
    if (!item)
        return -ENOMEM;
    *item = v;
    return 0;
}

/* A sum that stops at its maximum instead of overflowing. */
static void summary_add_bounded(uint64_t *sum, uint64_t n) {
    if (__builtin_add_overflow(*sum, n, sum))
        *sum = UINT64_MAX;
}

/* Each field before PERIOD has eight bytes, so counting bits gives the offset. */
static uint64_t summary_period_of(const PdRecord *record, const PdAttr *attr) {
    uint64_t before = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_IP | PD_SAMPLE_TID | PD_SAMPLE_TIME |
                      PD_SAMPLE_ADDR | PD_SAMPLE_ID | PD_SAMPLE_STREAM_ID | PD_SAMPLE_CPU;
    size_t offset =
        PD_RECORD_HEADER_SIZE + 8 * (size_t)__builtin_popcountll(attr->sample_type & before);

    if (!(attr->sample_type & PD_SAMPLE_PERIOD))
        return attr->sample_period;
    return offset + 8 <= record->size ? load_u64(record->data + offset, record->swap) : 0;
}

static int summary_add_sample(Summary *s, const PdRecord *record, const PdStamp *stamp) {
    SummaryEvent *event;
    int r;

    s->samples++;
    if (stamp->has_time) {
        s->first_time = s->has_time ? MIN(s->first_time, stamp->time) : stamp->time;
        s->last_time = MAX(s->last_time, stamp->time);
        s->has_time = true;
    }
    if (stamp->has_tid) {
        r = summary_set_add(&s->pids, stamp->pid);
        if (r >= 0)
            r = summary_set_add(&s->tids, stamp->tid);
        if (r < 0)
            return r;
    }
    if (!stamp->event) {
        s->unmatched_samples++;
        return 0;
    }
    event = summary_event_row(s, stamp->event->index);
    if (!event)
        return -ENOMEM;
    event->samples++;
    summary_add_bounded(&event->period_sum, summary_period_of(record, &stamp->event->attr));
    return 0;
}

/* The nth u64 after the header; 0 if the record is too short. */
static uint64_t summary_word(const PdRecord *record, size_t n) {
    size_t offset = PD_RECORD_HEADER_SIZE + 8 * n;

    return offset + 8 <= record->size ? load_u64(record->data + offset, record->swap) : 0;
}

int summary_add(Summary *s, const PdRecord *record, const PdStamp *stamp) {
    SummaryType *type = summary_type_row(s, record->type);

    if (!type)
        return s->n_types < TYPES_MAX ? -ENOMEM : 0;
    type->n++;
    s->records++;
    switch (record->type) {
    case PD_RECORD_SAMPLE:
        return summary_add_sample(s, record, stamp);
    case PD_RECORD_LOST:
        summary_add_bounded(&s->lost_events, summary_word(record, 1));
        break;
    case PD_RECORD_LOST_SAMPLES:
        summary_add_bounded(&s->lost_samples, summary_word(record, 0));
        break;
    case PD_RECORD_THROTTLE:
        s->throttled++;
        break;
    case PD_RECORD_AUXTRACE:
        summary_add_bounded(&s->auxtrace_bytes, summary_word(record, 0));
        break;
    case PD_RECORD_BUILD_ID:
        s->build_id_records++;
        break;
    default:
        break;
    }
    return 0;
}

void summary_done(Summary *s) {
    free(s->types);
    free(s->events);
    free(s->pids.items);
    free(s->tids.items);
    hash_index_done(&s->pids.index);
    hash_index_done(&s->tids.index);
    *s = (Summary){};
}
