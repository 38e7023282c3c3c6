/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A CpuRing is one CPU's ring with the counters that write into it; a RingSet has those of a
 * session, of side-band or of data mappings, by CPU. This room only stores `sampler` and `session`
 * for the rooms above it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/ring/ring.h"
#include "capture/ring/tag.h"
#include "keeper/request/keeper-client.h"
#include "loop/loop.h"

enum {
    RING_MARKS = 8,
    /* A ring wakes the loop after this much was written since the last time. */
    SAMPLES_EIGHTHS = 3,
    SIDE_BAND_EIGHTHS = 1,
};

static inline uint32_t watermark(uint64_t ring_bytes, unsigned eighths) {
    return (uint32_t)(ring_bytes / 8 * eighths);
}

typedef struct Sampler Sampler;
typedef struct SamplerSession SamplerSession;
typedef struct Followers Followers;
typedef struct RingSet RingSet;

typedef struct Counter {
    uint32_t slot; /* the keeper's number for it */
    int fd;
    int32_t tid; /* -1: any thread */
    uint64_t id;
    unsigned event; /* its number in the session */
    uint64_t read_format;
    uint64_t lost, reported; /* records that did not fit, and how many of them were reported */
    uint64_t throttled_at;   /* since when it is throttled; 0: it is not */
} Counter;

typedef struct CpuRing {
    RingSet *set;
    unsigned cpu;
    Counter *counters; /* the first one owns the ring */
    size_t n_counters;
    Ring ring;
    uint64_t taken;              /* handed to the sink up to here */
    uint64_t noted;              /* the end of the current sweep */
    uint64_t marks[RING_MARKS];  /* the value of `taken` at the end of each sweep of the session */
    size_t n_marks;              /* used without a session; otherwise the session counts */
    uint64_t pace_ns, pace_head; /* when and where its pace was last measured */
    bool fills_fast;             /* it holds less than a second */
    bool lost_by_records;        /* new losses are known only from LOST records */
    bool was_nearly_full;        /* since its losses were last read */
    bool is_new;                 /* its events are not enabled yet */
    bool is_gone;                /* its CPU went away, even if it is back */
    uint64_t enabled_ns;         /* of its first event, when last looked at */
    LoopSource *source;
    size_t watched; /* the counter whose descriptor the loop watches */
} CpuRing;

/* For what the events of a set are opened: a CPU, a control group, threads, or all processes of a
 * user, which are followed. */
typedef struct TargetOps {
    /* What a thread starts inherits its events. They outlive a CPU, and read() does not return
     * their losses. */
    bool inherits;
    /* Opens all events on the CPU of the ring, which has none yet; the first one brings the
     * memory. */
    int (*open)(CpuRing *ring);
    /* Called when the rings were taken over. NULL: nothing to do. */
    int (*adopt)(RingSet *set);
    /* Returns the counter whose id stands for this one in recordings. */
    Counter *(*reporter)(const CpuRing *ring, Counter *counter);
    /* Gives records the ids of reporters. NULL: they have them already. */
    int (*unify)(const CpuRing *ring, Bytes *records);
    /* Forgets the followed processes. NULL: there are none. */
    void (*done)(RingSet *set);
} TargetOps;

typedef struct RingCounts {
    uint64_t bytes, lost;
    uint64_t throttles, throttled_ns;
    uint64_t lost_at_ns, throttled_at_ns; /* when it last happened */
} RingCounts;

struct RingSet {
    TagKind kind;
    const TargetOps *ops;
    Keeper *keeper;
    Sampler *sampler;
    SamplerSession *session; /* of TAG_SAMPLES; else NULL */
    CpuRing **rings;         /* by CPU */
    size_t n;
    Followers *followers; /* of ops that follow processes; NULL: none yet */
    RingCounts counts;
};

/* The ring of that CPU, or NULL. */
CpuRing *ring_set_find(const RingSet *set, unsigned cpu);
int ring_set_add(RingSet *set, unsigned cpu, CpuRing **ret);
/* Closes all rings here, and at the keeper if asked. */
void ring_set_done(RingSet *set, bool at_keeper);
void ring_set_remove(RingSet *set, CpuRing *ring, bool at_keeper);
uint64_t ring_set_counters(const RingSet *set);
uint64_t ring_set_bytes(const RingSet *set);
/* Closes a counter other than the owner of the ring. */
void counter_close(CpuRing *ring, size_t i);
int counter_control(const Counter *counter, unsigned long request);
