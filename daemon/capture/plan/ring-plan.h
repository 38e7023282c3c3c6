/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How large the rings of a session are, and how much of the stack its samples copy, so that a ring
 * holds some seconds of samples and other sessions find memory too.
 */

#include "capture/plan/plan.h"

/* What a session finds. */
typedef struct RingRoom {
    const CpuList *cpus;   /* on each of which it has a ring */
    uint64_t buffer_bytes; /* BufferSize= */
    uint64_t left_bytes;   /* of the memory for the rings of all sessions */
} RingRoom;

typedef struct RingPlan {
    uint64_t bytes, wanted_bytes; /* of a ring */
    uint64_t bytes_per_sec;       /* that a busy CPU writes into it */
    uint64_t span_ms;             /* how long it holds them */
    bool is_small;                /* less than BufferSize=, or less than two seconds of stacks */
} RingPlan;

/* Shortens the stacks that are unwound where two seconds of them do not fit. Those that
 * CallGraph=auto chose are left out where they are too many, or do not fit at all. */
RingPlan ring_plan(Plan *plan, const RingRoom *room);
