/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* The events of the set on one CPU, with their ring: 1 when there is a ring now, 0 when the CPU is
 * away or has no such event. */
int open_ring(RingSet *set, unsigned cpu);
/* All events of the set for one thread (-1: whatever runs) on the ring's CPU; for TargetOps. 0 when
 * the thread is gone. */
int open_target(CpuRing *ring, int32_t pid);
/* On all CPUs that side-band is on, and from now on with it; where only processes of one user are
 * followed there is no such event. Once in the life of a sampler, on the main thread: without a
 * ring of its own an event takes 0.04 ms to open. */
int open_namespaces(Sampler *sampler);
