/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Records in the order of their time. A recording holds one run of records a ring buffer, pass
 * after pass; FINISHED_ROUND promises that nothing later is older than what stood before the
 * previous one. PdOrder puts a sorter behind a reader.
 */

#include "perfdata/order/sorter.h"
#include "perfdata/reader/reader.h"

/* What FINISHED_ROUND promises, for whoever feeds a sorter by itself: at the end of a round all may
 * go that is not younger than what had been seen when the round before it ended. */
typedef struct PdRounds {
    uint64_t greatest; /* time seen so far */
    uint64_t at_end;   /* `greatest` at the end of the last round */
} PdRounds;

static inline void pd_rounds_saw(PdRounds *rounds, uint64_t time) {
    if (time > rounds->greatest)
        rounds->greatest = time;
}

/* The time up to which records may go. */
static inline uint64_t pd_rounds_end(PdRounds *rounds) {
    uint64_t limit = rounds->at_end;

    rounds->at_end = rounds->greatest;
    return limit;
}

/* False where order in the file is all there is: without sample_id_all only samples have a time, so
 * that sorting would part them from the side-band around them. */
bool pd_order_applies(const PdReader *reader);

typedef struct PdOrder PdOrder;

/* Borrows the reader, which must stay and be read by nobody else. Records of tools and those
 * without a time come at once, in their place in the file. FINISHED_ROUND is handed out too. */
int pd_order_new(PdReader *reader, const PdOrderOptions *options, PdOrder **ret);
PdOrder *pd_order_free(PdOrder *order);
DEFINE_CLEANUP(PdOrder *, pd_order_free);
/* As pd_reader_next(); *ret_stamp as pd_events_stamp(). */
int pd_order_next(PdOrder *order, PdRecord *ret, PdStamp *ret_stamp);
/* Records that came after a round had promised there would be none so old. */
uint64_t pd_order_late(const PdOrder *order);
