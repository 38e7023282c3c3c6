/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sorts records by time. A recording has one run of records for each ring buffer, pass after pass;
 * FINISHED_ROUND promises that no later record is older than those before the previous
 * FINISHED_ROUND. PdOrder puts a sorter behind a reader.
 */

#include "perfdata/order/sorter.h"
#include "perfdata/reader/reader.h"

/* Computes what FINISHED_ROUND promises, for code that feeds a sorter itself: at the end of a round
 * all records can be released that are not younger than the newest one at the end of the previous
 * round. */
typedef struct PdRounds {
    uint64_t greatest; /* the latest time so far */
    uint64_t at_end;   /* `greatest` at the end of the last round */
} PdRounds;

static inline void pd_rounds_saw(PdRounds *rounds, uint64_t time) {
    if (time > rounds->greatest)
        rounds->greatest = time;
}

/* The time up to which records can be released. */
static inline uint64_t pd_rounds_end(PdRounds *rounds) {
    uint64_t limit = rounds->at_end;

    rounds->at_end = rounds->greatest;
    return limit;
}

/* False if only the file's own order makes sense: without sample_id_all only samples have a time,
 * and sorting would separate them from the side-band around them. */
bool pd_order_applies(const PdReader *reader);

typedef struct PdOrder PdOrder;

/* Borrows the reader; nobody else may read from it meanwhile. Records of tools and those without a
 * time are returned at once, in file order. FINISHED_ROUND is returned too. */
int pd_order_new(PdReader *reader, const PdOrderOptions *options, PdOrder **ret);
PdOrder *pd_order_free(PdOrder *order);
DEFINE_CLEANUP(PdOrder *, pd_order_free);
/* Like pd_reader_next(); *ret_stamp as from pd_events_stamp(). */
int pd_order_next(PdOrder *order, PdRecord *ret, PdStamp *ret_stamp);
/* The stream promises in another way that no later record is older than this time: what is older is
 * returned next, without waiting for rounds. */
void pd_order_release(PdOrder *order, uint64_t time);
/* The input has ended, and what is returned now was not released by anything else: of a stream that
 * was cut off, older records may be missing. */
bool pd_order_at_end(const PdOrder *order);
/* The number of records that came although a FINISHED_ROUND had promised none so old. */
uint64_t pd_order_late(const PdOrder *order);
