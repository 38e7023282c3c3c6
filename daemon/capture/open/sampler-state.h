/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The sampler and its sessions, as the rooms of capture see them. Each part says which room keeps
 * it; other rooms read it at most.
 */

#include <stdatomic.h>

#include "capture/open/sampler-type.h"
#include "capture/plan/cpu-list.h"
#include "capture/plan/plan.h"
#include "capture/ring/ring-set.h"
#include "util/cgroup.h"

/* The control group that a session is for; see follow/group.c. */
typedef struct SessionGroup {
    const char *path;     /* as the keeper opens it; borrowed of the configuration */
    bool is_followed;     /* there is one, and it can be looked up */
    uint64_t id;          /* the one that the events are for; 0: it does not exist */
    uint64_t seen_ns;     /* when it was there last */
    uint64_t gap_from_ns; /* since when the session was without it; 0: no gap */
    uint64_t gap_to_ns;   /* 0: it is without it still */
    int watch;            /* of a folder above it; not above 0: there is none */
} SessionGroup;

/* The CPUs, memory and descriptors that a session finds when it begins to open. */
typedef struct SessionRoom {
    CpuList online;
    uint64_t ring_bytes; /* left for its rings */
    bool is_by_config;   /* MaxBufferTotal= limits them, and not the kernel */
    uint64_t used_descriptors;
    unsigned n_offline; /* of the sampler */
} SessionRoom;

struct SamplerSession {
    Sampler *sampler;
    SamplerSession *next;
    SessionConfig config;
    Plan plan;
    RingSet rings;
    uint64_t ring_bytes;
    unsigned degraded;

    /* open */
    CpuList wanted; /* empty: all */
    uint32_t *tids; /* with pids: their threads */
    size_t n_tids;
    uint64_t identity;
    PdEvents *events, *taken; /* as stored; as in the rings, NULL: the same */

    /* sweep */
    uint64_t sweeps[RING_MARKS]; /* that ended and are not written yet */
    size_t n_sweeps;

    /* follow */
    SessionGroup group;
    unsigned generation;
    bool has_changed; /* rings were closed or opened */
    bool logged_partial;
    unsigned n_retries; /* to open on CPUs that it lacks */

    /* sampler */
    SessionRoom room;
    atomic_bool is_unwanted; /* whoever opens it may leave off */
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
    RingSet side_band, data;
    SamplerSession *sessions; /* in order of their coming */
    CpuList online;
    Buffer scratch;

    /* open */
    Held *held; /* what an earlier recorder left */
    size_t n_held;
    PdAttr side_band_attr;
    uint64_t side_band_bytes, data_bytes; /* of a ring */
    PdEvents *side_band_events;
    bool records_namespaces;      /* side-band has the event that does */
    _Atomic uint64_t max_rate_hz; /* the kernel's limit as it was read last */

    /* sweep */
    SweepPhase phase;
    uint64_t start_ns; /* of the present sweep */
    uint64_t n_sweeps, drain_ns;

    /* follow: CPUs and data mappings */
    const char *cpus_path;
    char online_text[CPU_LIST_TEXT_MAX]; /* what the file that lists them said last */
    int online_fd, uevent_fd;
    unsigned n_offline; /* CPUs that went away so far */
    unsigned ticks, n_retries;
    bool records_data; /* data mappings are recorded */

    /* follow: processes of a user */
    bool is_full;              /* there are no descriptors for more processes */
    uint64_t unsure_before_ns; /* who started before, by CLOCK_BOOTTIME, may be followed unheard */
    LoopCallback on_follow;    /* NULL: nobody looks */
    void *follow_userdata;

    /* follow: control groups */
    CgroupTree *groups; /* NULL: no session has asked for it */
    int groups_fd;
    int groups_watch; /* hears of groups that come and go; -1: nothing does */
    LoopSource *groups_source;

    /* follow: the loop */
    Loop *loop;
    LoopCallback on_full, on_cpus;
    void *watch_userdata;
    LoopSource *tick_source, *uevent_source;
};

/* Descriptors of all events that are open. */
uint64_t sampler_descriptors(const Sampler *sampler);
bool session_wants_cpu(const SamplerSession *session, unsigned cpu);
/* Whether there is a CPU on which it should be and is not, among those online or all. */
bool session_lacks_cpu(const SamplerSession *session, bool online_only);
/* Its control group does not exist. */
bool session_lacks_group(const SamplerSession *session);
/* Its events are those of another recorder, for the group of this number, which may be replaced by
 * now; 0: not known. */
void session_adopt_group(SamplerSession *session, uint64_t id);
