/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a session passes to its writer: the head of a segment, batches of records, and facts for the
 * manifest.
 */

#include <stdbool.h>
#include <stdint.h>

#include "perfdata/event/event.h"
#include "perfdata/feature/coverage.h"
#include "store/disk/anchor.h"
#include "util/buffer.h"
#include "util/bytes.h"

/* The beginning of a segment: events (copied), tracing data, clock, and the records that every
 * segment starts with (kernel maps, ending in FINISHED_INIT). */
typedef struct SegmentHead {
    const PdEvents *events;
    Bytes tracing;
    ClockAnchor clock;
    /* When recording began, on which CPUs, and the gaps that are open at the beginning; borrowed.
     * from_ns 0: unknown. The previous segment ends where this one begins. */
    const PdCoverage *coverage;
    bool continues;  /* the rings were kept since the previous segment of this boot */
    Buffer preamble; /* taken on success */
} SegmentHead;

typedef enum StoreKind { STORE_SIDE_BAND, STORE_SAMPLES } StoreKind;

typedef struct StoreBatch {
    StoreKind kind;
    unsigned cpu;               /* which data.N the samples go to */
    uint64_t first_ns, last_ns; /* smallest and largest time in it; 0: unknown, the writer finds
                                 * them */
    uint64_t samples;
    Buffer records; /* taken on success */
    Bytes kept; /* instead of `records`: they stay where they are until their sweep is written */
} StoreBatch;

static inline Bytes store_batch_bytes(const StoreBatch *batch) {
    return batch->kept.size > 0 ? batch->kept : buffer_bytes(&batch->records);
}

typedef enum StoreCause {
    STORE_LOST_RING,  /* the ring was full, or held what is no sample */
    STORE_LOST_QUEUE, /* our queue was full */
} StoreCause;

/* How stacks of user code were unwound, in samples; all 0: none were. */
typedef struct StoreStacks {
    uint64_t whole, truncated, pending, refused, no_rule, anonymous, no_code, stuck, bits32,
        no_user;
    uint64_t bytes; /* of the stack that a sample copied at most */
} StoreStacks;

static inline void store_stacks_add(StoreStacks *to, const StoreStacks *stacks) {
    to->whole += stacks->whole;
    to->truncated += stacks->truncated;
    to->pending += stacks->pending;
    to->refused += stacks->refused;
    to->no_rule += stacks->no_rule;
    to->anonymous += stacks->anonymous;
    to->no_code += stacks->no_code;
    to->stuck += stacks->stuck;
    to->bits32 += stacks->bits32;
    to->no_user += stacks->no_user;
    to->bytes = to->bytes > stacks->bytes ? to->bytes : stacks->bytes;
}

/* Facts that are added to the manifest of the open segment. */
typedef struct SegmentFacts {
    uint64_t lost; /* lost samples; the next two fields describe them */
    unsigned cpu;
    StoreCause cause;
    uint64_t throttled_ns, throttles, inferred, dropped;
    uint64_t sweeps, drain_ns, cpu_ns; /* the cost of recording */
    uint64_t memory_bytes;             /* resident; the manifest keeps the maximum */
    StoreStacks stacks;
    const PdGap *gap; /* NULL: none; see pd_coverage_add_gap() */
} SegmentFacts;
