/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Selects what convert copies: drops samples and losses outside of a time span, side-band after it,
 * samples of events, processes, control groups and CPUs that were not selected, and the attrs of
 * events that are no longer needed.
 */

#include "client/file/selector.h"
#include "client/frame/option.h"
#include "perfdata/record/rewrite.h"

typedef struct Filter {
    bool by_time;
    uint64_t since, until;    /* since <= time < until */
    const OptionWords *names; /* of the selected events; none: all events */

    Selector selector; /* for samples; unset: all samples */

    PdEvents *kept;      /* the remaining events; NULL: all, unchanged */
    uint8_t *chosen;     /* indexed by event: FILTER_* */
    uint32_t *new_index; /* likewise; UINT32_MAX: it was dropped */
    size_t n_chosen;
    PdRewriter *rows;   /* drops rows about dropped events from tables */
    PdRewriter *losses; /* assigns losses counted for a dropped event to another one */
    Buffer rewritten;
    uint64_t first_time, last_time; /* of the copied samples; 0: none */
} Filter;

static inline bool filter_is_set(const Filter *filter) {
    return filter->by_time || filter->selector.options || (filter->names && filter->names->n > 0);
}

/* Call it when the events are known. -ENOENT: *ret_name is the name of no event. */
int filter_begin(Filter *filter, const PdEvents *events, const char **ret_name);
void filter_done(Filter *filter);
/* 1: write *record (which may have been replaced, valid until the next call); 0: drop it. */
int filter_record(Filter *filter, PdRecord *record, const PdStamp *stamp);
