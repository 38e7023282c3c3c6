/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The sampler and its sessions, as the rooms of capture see them. Each part names the room that
 * maintains it; other rooms only read it.
 */

#include <stdatomic.h>

#include "capture/open/sampler-type.h"
#include "capture/plan/cpu-list.h"
#include "capture/plan/plan.h"
#include "capture/ring/ring-set.h"
#include "util/cgroup.h"

/* The control group of a session; see follow/group.c. */
typedef struct SessionGroup {
    const char *path;     /* as the keeper opens it; borrowed from the configuration */
    bool is_followed;     /* the session has one, and it can be looked up */
    uint64_t id;          /* the group of the session's events; 0: it does not exist */
    uint64_t seen_ns;     /* when it was last found */
    uint64_t gap_from_ns; /* since when the session lacks it; 0: no gap */
    uint64_t gap_to_ns;   /* 0: the session still lacks it */
    int watch;            /* of a folder above it; 0 or less: there is none */
} SessionGroup;

/* The CPUs, memory and descriptors that a session finds when it begins to open. */
typedef struct SessionRoom {
    CpuList online;
    uint64_t ring_bytes; /* available for its rings */
    bool is_by_config;   /* the limit is MaxBufferTotal=, not the kernel's */
    uint64_t used_descriptors;
    unsigned n_offline; /* of the sampler */
} SessionRoom;

/* Memory that outlives the recorder, for samples that are unwound and not written yet. */
typedef struct ArenaMemory {
    bool is_open; /* at the keeper */
    uint32_t slot;
    void *memory; /* NULL: not mapped, or the owner of the session has it */
    uint64_t size;
} ArenaMemory;

struct SamplerSession {
    Sampler *sampler;
    SamplerSession *next;
    SessionConfig config;
    Plan plan;
    RingSet rings;
    uint64_t ring_bytes;
    uint64_t bytes_per_sec; /* that a busy CPU writes into its ring */
    unsigned degraded;

    /* open */
    CpuList wanted; /* empty: all */
    uint32_t *tids; /* the threads of its pids */
    size_t n_tids;
    uint64_t identity;
    PdEvents *events, *taken; /* as stored; as in the rings, NULL: the same */
    ArenaMemory arena;

    /* sweep */
    uint64_t sweeps[RING_MARKS]; /* sweeps that ended and are not written yet */
    size_t n_sweeps;

    /* follow */
    SessionGroup group;
    unsigned generation;
    bool has_changed; /* rings were closed or opened */
    bool logged_partial;
    unsigned n_retries; /* attempts to open on CPUs that it lacks */

    /* sampler */
    SessionRoom room;
    bool lacks_tables;       /* when it is planned, nobody makes unwind tables */
    atomic_bool is_unwanted; /* the thread that opens it may stop */
    bool is_enabled, was_taken_over;
    PlanNotes notes;
    void *userdata;
};

typedef enum SweepPhase {
    SWEEP_NONE,
    SWEEP_SIDE_BAND,
    SWEEP_SIDE_BAND_LATE,
    SWEEP_SAMPLES
} SweepPhase;

typedef struct Held Held;

struct Sampler {
    SamplerOptions options;
    bool lacks_tables; /* profd-elf, which makes unwind tables, does not run */
    RingSet side_band, data;
    SamplerSession *sessions; /* in the order in which they were added */
    CpuList online;
    Scratch scratch;

    /* open */
    Held *held; /* events of an earlier recorder */
    size_t n_held;
    PdAttr side_band_attr;
    uint64_t side_band_bytes, data_bytes; /* of a ring */
    PdEvents *side_band_events;
    bool records_namespaces;      /* side-band includes the event for them */
    _Atomic uint64_t max_rate_hz; /* the kernel's limit as last read */

    /* sweep */
    SweepPhase phase;
    uint64_t start_ns; /* of the present sweep */
    uint64_t n_sweeps, drain_ns;

    /* follow: CPUs and data mappings */
    const char *cpus_path;
    char online_text[CPU_LIST_TEXT_MAX]; /* what the file that lists them last contained */
    int online_fd, uevent_fd;
    unsigned n_offline; /* CPUs that have gone away so far */
    unsigned ticks, n_retries;
    bool records_data; /* data mappings are recorded */

    /* follow: processes of a user */
    bool is_full;              /* no descriptors are left for more processes */
    uint64_t unsure_before_ns; /* who began before (CLOCK_BOOTTIME) may have inherited events */
    LoopCallback on_follow;    /* NULL: nobody lists processes */
    void *follow_userdata;

    /* follow: control groups */
    CgroupTree *groups; /* NULL: no session needs it */
    int groups_fd;
    int groups_watch; /* reports groups that come and go; -1: none */
    LoopSource *groups_source;

    /* follow: the loop */
    Loop *loop;
    LoopCallback on_full, on_cpus;
    void *watch_userdata;
    LoopSource *tick_source, *uevent_source;
};

/* The number of descriptors of all open events. */
uint64_t sampler_descriptors(const Sampler *sampler);
bool session_wants_cpu(const SamplerSession *session, unsigned cpu);
/* Whether it has no ring on some CPU where it wants one, of those online or of all. */
bool session_lacks_cpu(const SamplerSession *session, bool online_only);
/* Whether its control group does not exist. */
bool session_lacks_group(const SamplerSession *session);
/* Notes the group, by number, for which another recorder opened the session's events; 0: unknown.
 * The group may have been replaced since. */
void session_adopt_group(SamplerSession *session, uint64_t id);
