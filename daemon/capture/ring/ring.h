/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One kernel ring buffer: mapped, read from one position on, given back up to another. Embedded in
 * its owner. Positions count bytes since the ring began and never wrap. The kernel moves head only
 * past whole records.
 */

#include <stdint.h>

#include "util/bytes.h"
#include "util/macro.h"

typedef struct Ring {
    void *memory; /* a control page, then size bytes; NULL: not mapped */
    uint64_t size;
} Ring;

/* size: a power of two, at least a page. -EPERM: over the locked-memory limit. */
int ring_init(Ring *ring, int event_fd, uint64_t size);
void ring_done(Ring *ring);

uint64_t ring_head(const Ring *ring);
/* The position up to which all was given back to the kernel. */
uint64_t ring_tail(const Ring *ring);
void ring_give_back(Ring *ring, uint64_t position);

/* Room for copies of records, some of which have pieces of stacks: it is in no core dump, and
 * neither is a ring. */
typedef struct Scratch {
    uint8_t *data;
    size_t size;
} Scratch;

int scratch_init(Scratch *scratch, size_t size);
void scratch_done(Scratch *scratch);

typedef struct RingSlice {
    Bytes records;  /* whole records, in the ring itself or in the scratch buffer */
    uint64_t end;   /* the position behind them */
    uint64_t types; /* the set of their types, those below 64 */
} RingSlice;

/*
 * Returns the records between `from` and `to` that are contiguous and have at most limit bytes, but
 * at least one. A record that wraps comes alone, joined in scratch. Gives nothing back. -EBADMSG:
 * the bytes are no records.
 */
int ring_slice(const Ring *ring, uint64_t from, uint64_t to, uint64_t limit, const Scratch *scratch,
               RingSlice *ret);
