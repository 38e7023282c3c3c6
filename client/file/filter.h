/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What convert leaves out: samples and losses outside a span of time, side-band after it, samples
 * of events, processes, control groups and CPUs that were not chosen, and the attrs of events that
 * nothing needs any more.
 */

#include "client/file/selector.h"
#include "client/frame/option.h"
#include "perfdata/record/rewrite.h"

typedef struct Filter {
    bool by_time;
    uint64_t since, until;    /* since <= time < until */
    const OptionWords *names; /* of the chosen events; none: all of them */

    Selector selector; /* of samples; all of them where it is not set */

    PdEvents *kept;      /* the events that go on; NULL: all, unchanged */
    uint8_t *chosen;     /* by index of the event: FILTER_* */
    uint32_t *new_index; /* likewise; UINT32_MAX: it is gone */
    size_t n_chosen;
    PdRewriter *rows;   /* leaves out rows of tables about events that are gone */
    PdRewriter *losses; /* gives losses told by an event that is gone to one that is not */
    Buffer rewritten;
    uint64_t first_time, last_time; /* of the samples that passed; 0: none */
} Filter;

static inline bool filter_is_set(const Filter *filter) {
    return filter->by_time || filter->selector.options || (filter->names && filter->names->n > 0);
}

/* Once the events are known. -ENOENT: a name is that of no event; *ret_name is it. */
int filter_begin(Filter *filter, const PdEvents *events, const char **ret_name);
void filter_done(Filter *filter);
/* 1: *record is to be written (and may be another than it was, valid until the next call), 0: it
 * is left out. */
int filter_record(Filter *filter, PdRecord *record, const PdStamp *stamp);
