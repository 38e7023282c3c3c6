/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the files of the sampler share: a CpuRing is one CPU's ring of one session (or of
 * side-band) with the counters that write into it, a RingSet is all of a session's, by CPU.
 */

#include <stdatomic.h>

#include "capture/ring/ring.h"
#include "capture/ring/tag.h"
#include "capture/sampler/cpu-list.h"
#include "capture/sampler/plan.h"
#include "capture/sampler/sampler.h"
#include "util/cgroup.h"

enum {
    SAMPLER_MARKS = 8,
    SIDE_BAND_RING_BYTES = 512 * 1024,
    /* A ring tells when this much came since it told last. */
    SAMPLES_EIGHTHS = 3,
    SIDE_BAND_EIGHTHS = 1,
};

static inline uint32_t watermark(uint64_t ring_bytes, unsigned eighths) {
    return (uint32_t)(ring_bytes / 8 * eighths);
}

typedef struct Counter {
    uint32_t slot; /* at the keeper */
    int fd;
    int32_t tid; /* -1: whatever runs */
    uint64_t id;
    unsigned event;        /* in the session's order */
    uint64_t lost, told;   /* records that the kernel could not place, and of how many we told */
    uint64_t throttled_at; /* since when it is held back; 0: it is not */
} Counter;

typedef struct RingSet RingSet;

typedef struct CpuRing {
    const RingSet *set;
    Sampler *sampler;
    SamplerSession *session; /* NULL: side-band, or data mappings */
    unsigned cpu;
    Counter *counters; /* the first one owns the ring */
    size_t n_counters;
    Ring ring;
    uint64_t taken;                /* handed to the sink up to here */
    uint64_t noted;                /* where the present sweep ends */
    uint64_t marks[SAMPLER_MARKS]; /* what was taken when each of the session's sweeps ended */
    size_t n_marks;                /* without a session; else the session counts them */
    uint64_t pace_ns, pace_head;   /* when and where its pace was looked at */
    bool fills_fast;               /* it holds less than a second */
    bool lost_by_records;          /* adopted: only LOST records tell what is new */
    bool is_gone;                  /* the CPU went away, even if it is back */
    bool is_own;                   /* of processes that are followed; counters are in order of id */
    LoopSource *source;
    size_t watched; /* the counter whose descriptor the loop watches */
} CpuRing;

/* A process that events were opened for, thread by thread. What it forked since inherited them. */
typedef struct Followed {
    uint32_t pid;
    uint64_t start_ns; /* 0: not known yet */
    uint64_t begin_ns; /* of opening */
    uint32_t *tids;    /* in order */
    size_t n_tids;
    bool is_held; /* its samples do not begin yet */
    bool is_there;
} Followed;

struct RingSet {
    TagKind kind;
    SamplerSession *session; /* of TAG_SAMPLES; else NULL */
    CpuRing **rings;         /* by CPU */
    size_t n;
    Followed *followed; /* by pid */
    size_t n_followed;
    uint64_t since_ns; /* when all that ran were followed; 0: not yet */
    bool is_adopted;   /* of some of those that are followed only the counters are known */
};

/* An event that the keeper held for an earlier recorder, until a session takes it. */
typedef struct Held {
    uint32_t slot;
    int fd; /* -1: taken */
    PdAttr attr;
    unsigned cpu;
    int32_t tid;
    uint64_t ring_bytes;
    Tag tag;
} Held;

/* The control group that a session is for. */
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
    SessionRoom room;
    atomic_bool is_unwanted; /* whoever opens it may leave off */
    SessionConfig config;
    Plan plan;
    CpuList wanted; /* empty: all */
    uint32_t *tids; /* with pids: their threads */
    size_t n_tids;
    uint64_t identity;
    SessionGroup group;
    unsigned generation;
    bool has_changed; /* rings were closed or opened */
    uint64_t ring_bytes;
    RingSet rings;
    PdEvents *events;
    uint64_t sweeps[SAMPLER_MARKS]; /* that ended and are not written yet */
    size_t n_sweeps;
    bool is_enabled, was_taken_over, told_partial;
    unsigned n_retries; /* to open on CPUs that it lacks */
    unsigned degraded;
    PlanNotes notes;
    uint64_t lost_ns, throttled_ns; /* when it last happened */
    SamplerCounts counts;
    void *userdata;
};

/* What the side-band event tells. */
#define SIDE_BAND_TELLS                                                                            \
    ((uint64_t)(PD_ATTR_MMAP | PD_ATTR_MMAP2 | PD_ATTR_COMM | PD_ATTR_COMM_EXEC | PD_ATTR_TASK |   \
                PD_ATTR_KSYMBOL | PD_ATTR_BPF_EVENT | PD_ATTR_CGROUP))

/* In the ring of side-band; a Tag has it, so it lasts. 2 was the event of data mappings, before it
 * had a ring of its own. */
enum { SIDE_BAND_EVENT = 0, NAMESPACES_EVENT = 1 };

typedef enum SweepPhase {
    SWEEP_NONE,
    SWEEP_SIDE_BAND,
    SWEEP_SIDE_BAND_LATE,
    SWEEP_SAMPLES
} SweepPhase;

struct Sampler {
    SamplerOptions options;
    Held *held;
    size_t n_held;
    RingSet side_band, data;
    PdAttr side_band_attr;
    uint64_t side_band_bytes, data_bytes; /* of a ring */
    PdEvents *side_band_events;
    bool is_own;            /* no whole CPUs */
    bool tells_namespaces;  /* side-band has the event that does */
    bool tells_data;        /* data mappings are recorded */
    bool is_full;           /* there are no descriptors for more processes */
    uint64_t doubted_ns;    /* who started before, by CLOCK_BOOTTIME, may be followed unheard */
    LoopCallback on_follow; /* NULL: nobody looks */
    void *follow_userdata;
    const char *cpus_path;
    SamplerSession *sessions; /* in order of their coming */
    CpuList online;
    char online_text[CPU_LIST_TEXT_MAX]; /* what the file that lists them said last */
    int online_fd;
    CgroupTree *groups; /* NULL: no session has asked for it */
    int groups_fd;
    int groups_watch; /* hears of groups that come and go; -1: nothing does */
    LoopSource *groups_source;
    SweepPhase phase;
    uint64_t start_ns; /* of the present sweep */
    Buffer scratch;
    SamplerCounts counts;         /* of what belongs to no session */
    _Atomic uint64_t max_rate_hz; /* the kernel's limit as it was read last */
    unsigned n_offline;           /* CPUs that went away so far */
    unsigned ticks, n_retries;
    Loop *loop;
    LoopCallback on_full, on_cpus;
    void *watch_userdata;
    LoopSource *tick_source, *uevent_source;
    int uevent_fd;
};

/* The ring of that CPU, or NULL. */
CpuRing *ring_set_find(const RingSet *set, unsigned cpu);
int ring_set_add(RingSet *set, Sampler *sampler, unsigned cpu, CpuRing **ret);
void ring_set_done(RingSet *set, bool at_keeper);
uint64_t ring_set_counters(const RingSet *set);
uint64_t ring_set_bytes(const RingSet *set);
/* Closes it here, and at the keeper too if asked. */
void ring_set_remove(RingSet *set, CpuRing *ring, bool at_keeper);

/* What an earlier recorder left. */
int adopt_list(Sampler *sampler);
void adopt_forget(Sampler *sampler);
/* The rings of the set that can go on as they are, on any CPU; events of it that cannot are closed.
 */
int adopt_rings(Sampler *sampler, RingSet *set);

/* Beside what the ring has already: what it is for, of one more thread. */
int open_thread(CpuRing *ring, uint32_t tid);
/* Adds the threads of a process, `max` in all; -E2BIG: there are more. */
int open_read_tasks(uint32_t pid, size_t max, uint32_t **tids, size_t *n);
/* Opens on one CPU: 1 when there is a ring now, 0 when the CPU is away or has no such event. The
 * first is for side-band and for data mappings. */
int open_shared(Sampler *sampler, RingSet *set, unsigned cpu);
int open_session(SamplerSession *session, unsigned cpu);
/* On all CPUs that side-band is on, and from now on with it; where only processes of one user are
 * followed there is no such event. */
int open_namespaces(Sampler *sampler);
PdAttr open_namespaces_attr(const Sampler *sampler);
/* Closes one that does not bring the ring. */
void counter_close(CpuRing *ring, size_t i);

/* Data mappings are recorded while a session samples stacks, and no longer. */
void data_update(Sampler *sampler);
/* On each CPU that has side-band and lacks them. */
void data_open_missing(Sampler *sampler);
PdAttr data_attr(const Sampler *sampler);
/* Hands out those records of the slice that are data mappings. */
int data_hand_out(const CpuRing *ring, Bytes records, const SamplerSinks *sinks);
/* Descriptors of all events that are open. */
uint64_t sampler_descriptors(const Sampler *sampler);

/* The kernel's answer to the side-band attr, with less asked for on old kernels. */
int open_settle_side_band(Sampler *sampler, unsigned cpu);
int open_list_threads(SamplerSession *session);
bool session_wants_cpu(const SamplerSession *session, unsigned cpu);
int session_build_events(SamplerSession *session);
int sampler_build_events(Sampler *sampler);
/* Whether there is a CPU on which it should be and is not, among those online or all. */
bool session_lacks_cpu(const SamplerSession *session, bool online_only);

/* Looks up the group of a session that begins. */
void group_begin(SamplerSession *session);
/* Its events are those of another recorder, for the group of this number, which may be replaced by
 * now; 0: not known. */
void group_adopt(SamplerSession *session, uint64_t id);
bool group_is_absent(const SamplerSession *session);
/* Looks up the groups of all sessions. True: some session has to be opened anew; its rings are
 * marked as gone. */
bool groups_look(Sampler *sampler);
/* Hears of what happens around the group of the session from now on, or no more. */
void group_watch(SamplerSession *session);
void group_unwatch(SamplerSession *session);
int group_watch_begin(Sampler *sampler, LoopCallback on_change);
void group_watch_end(Sampler *sampler);
/* Forgets what it heard of so far. */
void group_watch_read(const Sampler *sampler);
/* The session's events are open again, if its group is there. */
void group_opened(SamplerSession *session);

/* A session that is for whatever the user runs. */
bool own_is_for(const Sampler *sampler, const SessionConfig *config);
/* The first one that is followed is the keeper, which brings the rings. */
int own_begin(RingSet *set, Sampler *sampler);
/* What was taken over is followed already, and so is what it started. */
void own_adopt(RingSet *set, Sampler *sampler);
void own_done(RingSet *set);
/* Other threads of those that are followed, on a ring that is new. */
int own_open(const RingSet *set, CpuRing *ring);
/* The counter under whose id the event's records are told, whichever thread they are of. */
Counter *own_teller(const CpuRing *ring, unsigned event);
/* Gives all records that id. */
int own_unify(const CpuRing *ring, Bytes *records);
/* Side-band was lost, forks among it. */
void own_doubt(Sampler *sampler);
unsigned own_degraded(const SamplerSession *session);

/* Whether sampler_refresh_cpus() has something to do, by messages and the list of CPUs. */
bool hotplug_is_due(Sampler *sampler);
/* Tells, once, of a session that lacks CPUs. */
void hotplug_check_partial(SamplerSession *session);

/* To open a session takes three steps: sampler_session_open() asks the keeper and may run on any
 * thread, the others look at what the main thread changes. sampler_session_join() puts it beside
 * the others. */
int sampler_session_prepare(Sampler *sampler, const SessionConfig *config, SamplerSession **ret);
int sampler_session_open(SamplerSession *session);
/* The first part of it: what it would count. */
int sampler_session_settle(SamplerSession *session);
int sampler_session_join(SamplerSession *session);
/* One that is not beside the others, here and if asked at the keeper; returns NULL. */
SamplerSession *sampler_session_free(SamplerSession *session, bool at_keeper);
/* The same, at the keeper as well and beside the main thread where that may be; returns NULL. */
SamplerSession *opening_close(SamplerSession *session);

int counter_control(const Counter *counter, unsigned long request);
int watch_ring(CpuRing *ring);
/* Reads the kernel's limit and tells of sessions that are above it now. */
void watch_rate(Sampler *sampler);
void watch_done(Sampler *sampler);

/* Counts what the kernel says in the ring about throttling and loss. */
void loss_notice(CpuRing *ring, Bytes records);
/* Takes a counter's figure before it is closed. */
void loss_read(CpuRing *ring, Counter *counter);
/* The `lost` of the event with this id out of what read() gave; -EBADMSG when it is not there. */
int loss_parse(uint64_t read_format, Bytes bytes, uint64_t id, uint64_t *ret);
