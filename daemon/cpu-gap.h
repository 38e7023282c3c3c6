/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Since when a session lacks which CPU, for the gaps that its manifests tell of. */

#include "capture/sampler.h"
#include "store/store.h"

typedef struct CpuGaps CpuGaps;

/* From the CPUs that the session has now. */
int cpu_gaps_new(const SamplerSession *sampler, CpuGaps **ret);
CpuGaps *cpu_gaps_free(CpuGaps *gaps);
DEFINE_CLEANUP(CpuGaps *, cpu_gaps_free);

/* Calls fn with a fact for each CPU that went or came back since the last call. */
int cpu_gaps_update(CpuGaps *gaps, const SamplerSession *sampler, uint64_t now_ns,
                    int (*fn)(void *userdata, const SegmentFacts *facts), void *userdata);
