/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a session hands to its writer: the head of a segment, batches of records, and facts for the
 * manifest.
 */

#include <stdbool.h>
#include <stdint.h>

#include "perfdata/event/event.h"
#include "perfdata/feature/coverage.h"
#include "store/disk/anchor.h"
#include "util/buffer.h"
#include "util/bytes.h"

/* What begins with it: events (copied), tracing data, clock, and records that every segment has
 * (kernel maps, ending in FINISHED_INIT). */
typedef struct SegmentHead {
    const PdEvents *events;
    Bytes tracing;
    ClockAnchor clock;
    /* From when on it is recorded, on which CPUs, and which gaps go on when it begins; borrowed.
     * from_ns 0: not known. The segment before it ends where this one begins. */
    const PdCoverage *coverage;
    bool continues;  /* begins where the last one of this boot ended: its rings went on */
    Buffer preamble; /* taken, when it succeeds */
} SegmentHead;

typedef enum StoreKind { STORE_SIDE_BAND, STORE_SAMPLES } StoreKind;

typedef struct StoreBatch {
    StoreKind kind;
    unsigned cpu;               /* which data.N samples go to */
    uint64_t first_ns, last_ns; /* least and greatest time in it; 0: not known, then looked for */
    uint64_t samples;
    Buffer records; /* taken, when it succeeds */
} StoreBatch;

typedef enum StoreCause {
    STORE_LOST_RING,  /* the kernel had no room */
    STORE_LOST_QUEUE, /* we had none */
} StoreCause;

/* Facts for the manifest of the open segment, added to what it has. */
typedef struct SegmentFacts {
    uint64_t lost; /* samples, for which these two hold */
    unsigned cpu;
    StoreCause cause;
    uint64_t throttled_ns, throttles, inferred, dropped;
    uint64_t sweeps, drain_ns, cpu_ns; /* what recording took */
    uint64_t memory_bytes;             /* resident; the greatest counts */
    const PdGap *gap;                  /* NULL: none; see pd_coverage_add_gap() */
} SegmentFacts;
