/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Counts, for each CPU, the samples that were taken from a ring and then left out: a queue was
 * full, or no reader could parse them. */

#include "perfdata/event/event.h"
#include "store/disk/batch.h"

typedef struct DroppedCpu {
    unsigned cpu;
    uint64_t samples;
} DroppedCpu;

typedef struct Dropped {
    DroppedCpu *cpus;
    size_t n;
} Dropped;

void dropped_done(Dropped *dropped);
void dropped_add(Dropped *dropped, unsigned cpu, uint64_t samples);
/* Counts all samples of a batch, which may come from several CPUs. */
void dropped_add_batch(Dropped *dropped, const PdEvents *events, const StoreBatch *batch);
