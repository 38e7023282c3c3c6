/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One kernel ring buffer: mapped, read from tail to a noted head, given back. Embedded in its
 * owner. The kernel moves head only behind whole records, so what lies between is whole.
 */

#include <stdint.h>

#include "util/buffer.h"
#include "util/macro.h"

typedef struct Ring {
    void *memory; /* a control page, then size bytes; NULL: not mapped */
    uint64_t size;
} Ring;

/* size: a power of two, at least a page. -EPERM: over the locked-memory limit. */
int ring_init(Ring *ring, int event_fd, uint64_t size);
void ring_done(Ring *ring);

uint64_t ring_head(const Ring *ring);
/* Appends what lies between tail and `head` (as noted by ring_head()) to out, and frees it. */
int ring_take(Ring *ring, uint64_t head, Buffer *out);
