/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Opens the events of the set on one CPU, with their ring. Returns 1 when there is a ring now, 0
 * when the CPU is away or has no such event. */
int open_ring(RingSet *set, unsigned cpu);
/* Opens all events of the set for one thread (-1: any) on the ring's CPU; for TargetOps. Returns 0
 * when the thread is gone. */
int open_target(CpuRing *ring, int32_t pid);
/* Opens an event for namespaces on all CPUs that have side-band, now and later; none where
 * processes of one user are followed. A sampler does this once, on the main thread: without a ring
 * of its own an event takes 0.04 ms to open. */
int open_namespaces(Sampler *sampler);
