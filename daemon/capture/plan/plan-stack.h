/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The events of a plan, and what their samples hold of user stacks. */

#include "capture/plan/cpu-list.h"
#include "config/config.h"
#include "perfdata/event/event.h"

enum {
    PLAN_NO_LEADER = -1,
    PLAN_AUTO_BYTES = 16384 /* of stack, with CallGraph=auto */
};

typedef struct PlanEvent {
    PdAttr attr;     /* as it is opened */
    bool is_unwound; /* its stacks become call chains before they are stored */
    bool may_unwind; /* CallGraph=auto decides whether they do */
    char *name;
    int leader;   /* index of the event that leads its group, before it; or PLAN_NO_LEADER */
    CpuList cpus; /* where its counters are; empty: everywhere */
} PlanEvent;

/* Why a session takes the call graphs that it takes. */
typedef enum CallGraphReason {
    CALL_GRAPH_AS_CONFIGURED,
    CALL_GRAPH_REFUSED,      /* those of the configuration cannot be taken here */
    CALL_GRAPH_CAN_UNWIND,   /* this and the others are of CallGraph=auto */
    CALL_GRAPH_NO_COPIES,    /* the kernel copies no stacks */
    CALL_GRAPH_NO_PROGRAMS,  /* its events take no stacks of programs */
    CALL_GRAPH_UNKNOWN_RATE, /* its events are sampled by period */
    CALL_GRAPH_HIGH_RATE,
    CALL_GRAPH_SMALL_RINGS,
    CALL_GRAPH_NO_TABLES, /* profd-elf, which makes them, does not run */
} CallGraphReason;

typedef struct Plan {
    PlanEvent *events;
    size_t n;
    Buffer tracing;    /* TRACING_DATA, where there are tracepoints */
    unsigned degraded; /* a set of Degraded */
    uint64_t hz;       /* the highest rate that was asked for and got; 0: only periods */
    char *description;
    CallGraphReason call_graph_reason;
    uint64_t asked_bytes; /* of stack that its unwound samples copy, before they were shortened */
} Plan;

/* Samples bring copies of stacks. */
bool plan_takes_stacks(const Plan *plan);
/* Whether samples of some event are unwound before they are stored. */
bool plan_unwinds(const Plan *plan);
/* The most bytes of stack that a sample copies. */
uint64_t plan_stack_bytes(const Plan *plan);
/* Lets events whose samples are unwound copy half of that, down to 4K. False: none can do so. */
bool plan_halve_stacks(Plan *plan);
/* Decides what CallGraph= means for the events, as far as their attrs answer that. */
void plan_settle_call_graph(Plan *plan, CallGraph configured);
/* Carries out that CallGraph=auto chose call chains by frame pointers instead of stacks. */
void plan_use_frame_pointers(Plan *plan, CallGraphReason reason);
/* Whether CallGraph=auto chose to unwind, and may choose otherwise. */
bool plan_may_choose(const Plan *plan);
/* An event of an earlier recorder goes on: takes its attr, and what it says about stacks. */
void plan_adopt_attr(PlanEvent *event, const PdAttr *attr);
/* The call graphs that its samples have, which may not be those of the configuration. */
CallGraph plan_call_graph(const Plan *plan);
/* "unwind:16384", for people and programs; and why, in one sentence. */
void plan_put_call_graph(const Plan *plan, Buffer *out);
void plan_put_call_graph_reason(const Plan *plan, Buffer *out);
/* The attr of the event in a recording. */
PdAttr plan_stored_attr(const PlanEvent *event);
