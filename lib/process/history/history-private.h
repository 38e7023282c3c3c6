/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the History and of the Emission share. */

#include "process/history/history.h"

typedef struct Process Process;
typedef struct Task Task;
typedef struct Entry Entry;
typedef struct EmittedProcess EmittedProcess;
typedef struct Cgroup Cgroup;
typedef struct KernelRecord KernelRecord;

enum { EMISSIONS_MAX = 64 }; /* bits of a mask */

/*
 * What happened after the floor: a record without its trailer, of which the parts are kept apart
 * since its id is the Emission's. Entries hang in two lists, that of all and that of their process,
 * both by time, and equal times in the order in which they came.
 */
struct Entry {
    Entry *older, *newer; /* of all */
    Entry *next;          /* of its process */
    Process *process;     /* for what is the whole kernel's: &history->kernel */
    ProcessImage *image;  /* of an MMAP2; NULL: there was no room */
    uint64_t time;
    uint64_t order; /* in which it was fed */
    uint32_t pid, tid, cpu;
    uint32_t size; /* of record */
    uint8_t record[];
};

typedef struct Queue {
    Entry *first, *last;
} Queue;

/* A thread, not the leader, as it was at the floor. */
struct Task {
    Task *next;           /* in its bucket */
    Task *before, *after; /* of its process */
    Process *process;
    ProcessName *comm; /* NULL: nobody said */
    uint64_t comm_ns;
    uint64_t held;     /* by which Emissions */
    uint64_t ended_ns; /* as of a process */
    uint32_t tid;
    uint32_t mark; /* of the baseline that last named it */
};

/*
 * One life of a pid. comm, maps and tasks are what they were at the floor, or, when it was born
 * after it and a baseline was read of it, what they were at birth.
 */
struct Process {
    Process *next; /* in its bucket */
    uint64_t serial;
    uint64_t birth_ns;   /* 0: before anything was heard */
    uint64_t folded_ns;  /* of the last record folded in */
    uint64_t stated_ns;  /* the moment as of which an earlier recording told what it was */
    uint64_t scanned_ns; /* when the last baseline was begun */
    uint64_t ended_ns;   /* 0: it lives; else when it was last heard of, by EXIT or by samples */
    uint32_t pid, ppid;
    ProcessName *comm;
    uint64_t comm_ns;
    ProcessMaps *maps;        /* NULL: none */
    ProcessMaps *before_exec; /* what it mapped before it became another program just now */
    uint64_t exec_ns;
    Task *tasks;
    uint32_t n_living; /* of the tasks */
    Entry *birth;      /* NULL: it existed at the floor */
    Queue queue;
    EmittedProcess *emitted;
    uint8_t *namespaces; /* its last NAMESPACES without trailer, where they are recorded */
    uint32_t namespaces_size;
    bool known;  /* by a baseline, by exec, or from a parent that was */
    bool listed; /* among the unknown: it is, or it waits for what it was before exec */
    bool based;  /* born after the floor, and yet what is above is told by a baseline */
    bool leader_exited;
    uint64_t waits_on; /* serial of the parent whose baseline tells what it inherits */
    Process *unknown_before, *unknown_after;
};

/* A process in a recording. */
struct EmittedProcess {
    EmittedProcess *next;           /* of its process */
    EmittedProcess *before, *after; /* of its emission */
    Process *process;
    Emission *emission;
    bool blank;                  /* its state is not written since nobody knows it */
    uint64_t stamp_ns, floor_ns; /* of the state when it was written, and the floor then */
};

struct Cgroup {
    Cgroup *next;  /* in its bucket */
    Cgroup *newer; /* in the order of their coming */
    uint64_t id;
    uint64_t held;
    ProcessName *path;
};

struct KernelRecord {
    KernelRecord *next; /* in its bucket, by address or id */
    KernelRecord *older, *newer;
    uint64_t key;
    bool stays; /* while what was there is compared with what is */
    uint32_t size;
    uint8_t record[];
};

enum { CGROUP_BUCKETS = 1024, KERNEL_BUCKETS = 256, WANTED_MAX = 1024, RETAINED_MAX = 512 };

/* What ended, in the order in which it will be forgotten. */
typedef struct Grave {
    uint64_t due_ns;
    uint64_t serial;   /* of the process */
    uint32_t pid, tid; /* tid: pid for the process as a whole, 0 for what it was before exec */
} Grave;

typedef struct Wanted {
    ProcessImage *image; /* NULL: answered */
    uint64_t serial;
    uint64_t start, end;
    uint32_t pid;
} Wanted;

/* An image whose mappings are held back. */
typedef struct Waiting {
    ProcessImage *image;
    uint64_t floor_ns; /* when the first one was; the floor does not pass it until then */
    uint64_t since_ns; /* start of the sweep in which it was */
    uint64_t due_ns;   /* when the wait ends */
} Waiting;

enum { WAITING_MAX = 1024, TRIES_MAX = 3 };

struct History {
    ProcessStrings strings;
    uint64_t seed, serial, generation;
    uint64_t floor_ns, previous_ns, first_ns; /* 0: not yet */
    uint64_t settled_ns;
    uint64_t resumed_ns; /* the floor at which this recorder took over */

    Process **buckets;
    size_t n_buckets, n_processes;
    Task **task_buckets;
    size_t n_task_buckets, n_tasks;
    Process *first_unknown, *last_unknown;
    Process *untold; /* where history_next_unknown() goes on */
    uint64_t n_unknown;
    uint32_t mark;

    Entry **fed; /* not settled yet */
    size_t n_fed, fed_allocated;
    Entry *oldest, *newest;
    uint64_t n_entries;

    Grave *graves; /* from first to n */
    size_t first_grave, n_graves, graves_allocated;

    Process kernel; /* has a queue and nothing else */
    KernelRecord *kernel_buckets[KERNEL_BUCKETS];
    KernelRecord *oldest_kernel, *newest_kernel;
    size_t n_kernel;
    bool knows_kernel;
    Cgroup *cgroups[CGROUP_BUCKETS];
    Cgroup *oldest_cgroup, *newest_cgroup;
    size_t n_cgroups;

    Wanted *wanted; /* WANTED_MAX of them, by serial; NULL: none yet */
    uint64_t wanted_first, wanted_next, wanted_end; /* unanswered, not taken, free */
    ProcessImage **retained;                        /* RETAINED_MAX */
    uint64_t n_retained;
    HistoryIdentify identify;
    Waiting *waiting; /* WAITING_MAX */
    size_t n_waiting;
    ProcessImage *first_due;
    uint64_t sweep_ns; /* start of the sweep that is settled now */
    uint64_t n_marked; /* mappings that came without a build id from another recording */
    uint64_t unidentified;
    uint8_t vdso_id[20]; /* of 64-bit processes */
    uint8_t vdso_id_size;
    bool keeps_data;
    uint64_t hold_until_ns;

    Emission *emissions[EMISSIONS_MAX];
    uint64_t inferred, dropped, late, lost;
};

enum { RECENT_MAX = 256 };

typedef struct Recent {
    uint64_t generation, from_ns;
    uint32_t pid, tid;
} Recent;

struct Emission {
    History *history;
    PdTrailer trailer;
    uint64_t slot; /* its bit */
    bool begun;    /* the preamble is written */
    Buffer pending;
    EmittedProcess *emitted;
    uint64_t recent_cgroup;
    Recent recent[RECENT_MAX];
    ProcessImage **owed; /* images that it names without a build id, or not yet */
    size_t n_owed, owed_allocated;
    bool releases; /* nothing is held back */
    bool has_data; /* mappings that are read and not executed as well */
};

/* history-list.c */
Entry *entry_new(History *h, size_t size);
Entry *entry_free(History *h, Entry *e);
/* `hint`: where to look first, or NULL. */
void entry_link(History *h, Entry *e, Entry *hint);
void entry_unlink(History *h, Entry *e);
/* Takes it out of both lists; it goes on. */
void entry_detach(History *h, Entry *e);
PdRecord entry_parse(const Entry *e, PdBody *ret);
EmittedProcess *emitted_process_free(EmittedProcess *m);

/* history-process.c */
Process *process_find(const History *h, uint32_t pid, uint64_t time);
/* The same, but NULL when none was born by then. */
Process *process_find_born(const History *h, uint32_t pid, uint64_t time);
Process *process_find_serial(const History *h, uint32_t pid, uint64_t serial);
Process *process_new(History *h, uint32_t pid, uint64_t birth_ns);
void process_free(History *h, Process *p);
/* An older life of the pid ends where the next one begins. */
void process_free_older(History *h, const Process *than);
void process_set_comm(History *h, Process *p, ProcessName *comm, uint64_t time);
void process_set_known(History *h, Process *p);
/* A NAMESPACES record without trailer; without memory there is none. */
void process_set_namespaces(History *h, Process *p, Bytes record);
void process_set_unknown(History *h, Process *p);
Task *task_find(const History *h, const Process *p, uint32_t tid);
Task *task_get(History *h, Process *p, uint32_t tid);
void task_free(History *h, Task *task);
void task_set_comm(History *h, Task *task, ProcessName *comm, uint64_t time);
ProcessName *history_name(History *h, Bytes text);

/* history-entry.c: the way of an entry into the folded state */
void entry_fold(History *h, Entry *e);
/* An EXIT for which there is no room to wait. */
void exit_fold(History *h, const PdTask *exit, uint64_t time);
/* Into its process, and to the recordings that hold it; the hint for the next one. */
Entry *entry_settle(History *h, Entry *e, Entry *hint);

/* history-grave.c: what ended is remembered for a while, where there is room */
/* NULL: it is gone already. */
Process *process_end(History *h, Process *p, uint64_t time);
void task_end(History *h, Task *task, uint64_t time);
void process_exec(History *h, Process *p, uint64_t time);
void graves_expire(History *h);

/* history-state.c: what was when, from the state at the floor and the queues */
/* What it was called just before `time`; borrowed, NULL: nobody said. */
Bytes comm_at(const History *h, const Process *p, uint32_t tid, uint64_t time);
/* A reference, or NULL: nothing is mapped, or no memory. */
ProcessMaps *maps_at(History *h, const Process *p, uint64_t time);
void maps_apply(History *h, ProcessMaps **maps, const PdMmap *mmap, ProcessImage *image);

/* history-image.c */
ProcessImage *image_of(History *h, const PdMmap *mmap);
void image_want(History *h, ProcessImage *image, uint32_t pid, uint64_t start, uint64_t end);
void images_forget(History *h);
bool image_has_id(const ProcessImage *image);
/* perf would look for symbols in the file at its path. */
bool path_is_file(Bytes path);
/* A data mapping that is worth its room. */
bool mmap_is_needed(const History *h, const PdMmap *mmap);
void image_found(History *h, ProcessImage *image, Bytes build_id);
/* Whether mappings of the image are held back for its build id. */
bool image_wait(History *h, ProcessImage *image);
/* The next identity_settle() writes what recordings owe of it. */
void image_set_due(History *h, ProcessImage *image);

/* history-identity.c */
/* Ends waits that took too long, and has recordings write what they owe. */
void identity_settle(History *h, uint64_t start_ns);
/* The floor stays below that while mappings are held back. */
uint64_t identity_floor(const History *h);
void identity_done(History *h);

/* history-kernel.c */
void kernel_fold(History *h, Bytes record);
void kernel_done(History *h);
void cgroup_hear(History *h, uint64_t id, Bytes path);
Cgroup *cgroup_of(History *h, uint64_t id);
void cgroups_let_go(History *h, uint64_t slot);
void cgroups_done(History *h);

/* emission-record.c */
PdTrailer emission_trailer(const Emission *e, uint32_t pid, uint32_t tid, uint64_t time);
void emission_write_entry(Emission *e, const Entry *entry);
void emission_write_mapping(Emission *e, const PdTrailer *trailer, const ProcessMapping *mapping);
/* A record about the kernel. */
void emission_kernel_record(Emission *e, Bytes record, uint64_t stamp);
/* The image that has the build id of the file; NULL: the mapping is none of the recording's. */
ProcessImage *emission_code_of(const Emission *e, ProcessImage *image);
void emission_forget_owed(Emission *e);

/* emission-late.c */
void emission_write_due(Emission *e);

/* emission.c */
void emission_forward(Emission *emission, const Entry *e);
/* What was blank is known now. */
void emitted_process_fill(EmittedProcess *m);

/* The least time that may be written. */
static inline uint64_t history_stamp(const History *h) {
    uint64_t floor = h->floor_ns ? h->floor_ns : h->first_ns;

    return floor ? floor : 1;
}

static inline void history_heard(History *h, uint64_t time) {
    if (time > 0 && (h->first_ns == 0 || time < h->first_ns))
        h->first_ns = time;
}

static inline Bytes entry_record(const Entry *e) {
    return (Bytes){.data = e->record, .size = e->size};
}
