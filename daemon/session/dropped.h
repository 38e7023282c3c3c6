/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Samples that were taken from a ring and found no room, by the CPU that they are of. */

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
/* All samples of a batch, which may hold those of several CPUs. */
void dropped_add_batch(Dropped *dropped, const PdEvents *events, const StoreBatch *batch);
