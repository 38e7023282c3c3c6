/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the History and of the Emission share. */

#include <sys/queue.h>

#include "process/history/history.h"

typedef struct Process Process;
typedef struct Task Task;
typedef struct Entry Entry;
typedef struct EmittedProcess EmittedProcess;
typedef struct Cgroup Cgroup;
typedef struct KernelRecord KernelRecord;

enum { EMISSIONS_MAX = 8 * sizeof(EmissionSet) };

/*
 * A record from after the floor, without its trailer: the trailer's fields are kept separately
 * since each Emission has its own id. Entries are in two lists, that of all and that of their
 * process, both sorted by time; entries with equal times keep the order in which they came.
 */
struct Entry {
    Entry *older, *newer; /* in the list of all */
    Entry *next;          /* in the list of its process */
    Process *process;     /* &history->kernel for records about the whole kernel */
    ProcessImage *image;  /* of an MMAP2; NULL: no memory */
    uint64_t time;
    uint64_t order; /* the order in which it was fed */
    uint32_t pid, tid, cpu;
    uint32_t size; /* of record */
    uint8_t record[];
};

typedef struct Queue {
    Entry *first, *last;
} Queue;

/* A thread other than the leader, in its state at the floor. */
struct Task {
    Task *next;           /* in its bucket; first, see hash-table.h */
    Task *before, *after; /* in the list of its process */
    Process *process;
    ProcessName *comm; /* NULL: unknown */
    uint64_t comm_ns;
    EmissionSet held;  /* those that have it */
    uint64_t ended_ns; /* as in Process */
    uint32_t tid;
    uint32_t mark; /* number of the last baseline that had it */
};

/* What a process maps, and from when to when; see history-space.c. */
typedef struct Space {
    TAILQ_ENTRY(Process) in_spaces; /* while it has maps */
    uint64_t generation;            /* of the history; 0: not looked up */
    uint64_t from_ns, until_ns;
    const Entry *next; /* its first record after the span */
    ProcessMaps *maps; /* NULL: nothing is mapped */
} Space;

/*
 * One life of a pid. comm, maps and tasks are the state at the floor, or the state at birth if it
 * was born after the floor and has a baseline.
 */
struct Process {
    Process *next; /* in its bucket; first, see hash-table.h */
    uint64_t serial;
    uint64_t birth_ns;   /* 0: before the first record */
    uint64_t folded_ns;  /* time of the last folded record */
    uint64_t stated_ns;  /* the moment for which an earlier recording stated its state */
    uint64_t scanned_ns; /* when its last baseline was begun */
    uint64_t ended_ns;   /* 0: it lives; else time of its last record, EXIT or sample */
    uint32_t pid, ppid;
    ProcessName *comm;
    uint64_t comm_ns;
    ProcessMaps *maps;        /* NULL: none */
    ProcessMaps *before_exec; /* mappings of the program before its latest exec */
    uint64_t exec_ns;
    Task *tasks;
    uint32_t n_living; /* number of living tasks */
    Entry *birth;      /* NULL: it existed at the floor */
    Queue queue;
    EmittedProcess *emitted;
    uint8_t *namespaces; /* its last NAMESPACES record without trailer, if recorded */
    uint32_t namespaces_size;
    bool known;  /* its state is known from a baseline, an exec, or a known parent */
    bool listed; /* in the list of unknown processes, or waiting for its state before exec */
    bool based;  /* born after the floor, with a state from a baseline */
    bool leader_exited;
    uint64_t waits_on; /* serial of the parent whose baseline will have what it inherited */
    Process *unknown_before, *unknown_after;
    Space space; /* for samples */
};

/* A process in one recording. */
struct EmittedProcess {
    EmittedProcess *next;           /* in the list of its process */
    EmittedProcess *before, *after; /* in the list of its emission */
    Process *process;
    Emission *emission;
    bool blank;                  /* its state was not written because it is unknown */
    uint64_t stamp_ns, floor_ns; /* the stamp of its state when written, and the floor at that
                                  * time */
};

struct Cgroup {
    Cgroup *next;  /* in its bucket; first, see hash-table.h */
    Cgroup *newer; /* in order of arrival */
    uint64_t id;
    EmissionSet held;
    ProcessName *path;
};

struct KernelRecord {
    KernelRecord *next; /* in its bucket; first, see hash-table.h */
    KernelRecord *older, *newer;
    uint64_t key;
    bool stays; /* used while old and new maps are compared */
    uint32_t size;
    uint8_t record[];
};

enum { WANTED_MAX = 1024, RETAINED_MAX = 512 };

/* Things that have ended, in the order in which they are forgotten. */
typedef struct Grave {
    uint64_t due_ns;
    uint64_t serial;   /* of the process */
    uint32_t pid, tid; /* tid: pid for the whole process, 0 for the mappings before exec */
} Grave;

typedef struct Wanted {
    ProcessImage *image; /* NULL: done */
    uint64_t serial;
    uint64_t start, end;
    uint64_t asked_ns; /* start of the last sweep before it was returned */
    uint32_t pid;
    bool checks; /* the build id is known */
} Wanted;

/* A file with a known build id that was mapped anew; see history-check.c. */
typedef struct ImageCheck {
    LIST_ENTRY(ImageCheck) in_checks;
    ProcessImage *image;
    EmissionSet shown; /* recordings that named it with the known build id */
    /* The first mapping that the check covers that runs or comes next, and the start of the sweep
     * in which it arrived; the same of mappings that came after a running check began. 0: none. */
    uint64_t first_ns, since_ns;
    uint64_t later_ns, later_since_ns;
    uint64_t start, end; /* of the last mapping */
    uint32_t pid;
} ImageCheck;

/* An image whose build id recordings wait for. */
typedef struct Waiting {
    ProcessImage *image;
    uint64_t since_ns; /* start of the sweep in which that happened */
    uint64_t due_ns;   /* when the wait ends */
} Waiting;

enum { WAITING_MAX = 1024, TRIES_MAX = 3 };

struct History {
    ProcessStrings strings;
    uint64_t serial, generation;
    uint64_t floor_ns, previous_ns, first_ns; /* 0: not set yet */
    uint64_t settled_ns;
    uint64_t resumed_ns; /* the floor at which this recorder took over */

    HashTable processes; /* by pid */
    HashTable tasks;     /* by tid */
    Process *first_unknown, *last_unknown;
    Process *unknown_next; /* where history_next_unknown() continues */
    uint64_t n_unknown;
    uint32_t mark;

    Entry **fed; /* not settled yet */
    size_t n_fed, fed_allocated;
    Entry *oldest, *newest;
    uint64_t n_entries;

    Grave *graves; /* used from first to n */
    size_t first_grave, n_graves, graves_allocated;

    Process kernel;           /* has a queue and nothing else */
    HashTable kernel_records; /* by address or id */
    KernelRecord *oldest_kernel, *newest_kernel;
    bool knows_kernel;
    HashTable cgroups; /* by id */
    Cgroup *oldest_cgroup, *newest_cgroup;

    Wanted *wanted; /* WANTED_MAX entries, indexed by serial; NULL: not allocated yet */
    uint64_t wanted_first, wanted_next, wanted_end; /* first without an answer, next to return,
                                                     * first free */
    ProcessImage **retained;                        /* RETAINED_MAX entries */
    uint64_t n_retained;
    HistoryIdentify identify;
    Waiting *waiting; /* WAITING_MAX entries */
    size_t n_waiting;
    ProcessImage *first_due;
    LIST_HEAD(, ImageCheck) checks;
    size_t n_checks;
    /* The first mapping that the next settle corrects, and the start of the sweep in which it
     * arrived; UINT64_MAX: none. */
    uint64_t correct_ns, correct_since_ns;
    uint64_t sweep_ns; /* start of the sweep that is being settled */
    uint64_t n_marked; /* mappings from another recording that have no build id */
    uint64_t unidentified;
    uint8_t vdso_id[20]; /* of 64-bit processes */
    uint8_t vdso_id_size;
    bool keeps_data;
    uint64_t hold_until_ns;

    TAILQ_HEAD(SpaceList, Process)
    spaces; /* processes whose Space has maps, the last that was asked for
             * first */
    size_t n_spaces;
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
    EmissionSet slot; /* its bit in the sets */
    bool begun;       /* the preamble was written */
    Buffer pending;
    EmittedProcess *emitted;
    uint64_t recent_cgroup;
    Recent recent[RECENT_MAX];
    ProcessImage **owed; /* images that it named without a build id */
    size_t n_owed, owed_allocated;
    bool has_data; /* also records mappings that are readable and not executable */
};

/* In history-list.c: */
Entry *entry_new(History *h, size_t size);
Entry *entry_free(History *h, Entry *e);
/* `hint`: where to start searching, or NULL. */
void entry_link(History *h, Entry *e, Entry *hint);
void entry_unlink(History *h, Entry *e);
/* Removes it from both lists without freeing it. */
void entry_detach(History *h, Entry *e);
PdRecord entry_parse(const Entry *e, PdBody *ret);
EmittedProcess *emitted_process_free(EmittedProcess *m);

/* In history-process.c: */
Process *process_find(const History *h, uint32_t pid, uint64_t time);
/* The same, but NULL if none was born by then. */
Process *process_find_born(const History *h, uint32_t pid, uint64_t time);
Process *process_find_serial(const History *h, uint32_t pid, uint64_t serial);
Process *process_new(History *h, uint32_t pid, uint64_t birth_ns);
void process_free(History *h, Process *p);
/* Frees older lives of the pid, which end where the next one begins. */
void process_free_older(History *h, const Process *than);
void process_set_comm(History *h, Process *p, ProcessName *comm, uint64_t time);
void process_set_known(History *h, Process *p);
/* Sets a NAMESPACES record without trailer, or none if there is no memory. */
void process_set_namespaces(History *h, Process *p, Bytes record);
void process_set_unknown(History *h, Process *p);
Task *task_find(const History *h, const Process *p, uint32_t tid);
Task *task_get(History *h, Process *p, uint32_t tid);
void task_free(History *h, Task *task);
void task_set_comm(History *h, Task *task, ProcessName *comm, uint64_t time);
ProcessName *history_name(History *h, Bytes text);

/* In history-entry.c: folds an entry into the state. */
void entry_fold(History *h, Entry *e);
/* Folds an EXIT for which there is no memory to wait. */
void exit_fold(History *h, const PdTask *exit, uint64_t time);
/* Adds the entry to its process and passes it to the recordings that hold it. Returns the hint for
 * the next entry. */
Entry *entry_settle(History *h, Entry *e, Entry *hint);

/* In history-grave.c: remembers for a while what has ended, as far as memory allows. */
/* NULL: it was freed. */
Process *process_end(History *h, Process *p, uint64_t time);
void task_end(History *h, Task *task, uint64_t time);
void process_exec(History *h, Process *p, uint64_t time);
void graves_expire(History *h);

/* In history-state.c: computes an earlier state from the state at the floor and the queues. */
/* The name just before `time`; borrowed, NULL: unknown. */
Bytes comm_at(const History *h, const Process *p, uint32_t tid, uint64_t time);
/* A reference; NULL: nothing is mapped, or no memory. */
ProcessMaps *maps_at(History *h, const Process *p, uint64_t time);
/* Applies the records of the process from `first` on that are before `time`. */
void maps_replay(History *h, const Process *p, const Entry *first, uint64_t time,
                 ProcessMaps **maps);
void maps_apply(History *h, ProcessMaps **maps, const PdMmap *mmap, ProcessImage *image);

/* In history-list.c: */
/* Gives the references back, so that a change of a process copies nothing. */
void spaces_release(History *h);
void space_release(History *h, Process *p);
/* Puts it first in the list, where it is if it had maps before. */
void space_list(History *h, Process *p, bool had_maps);

/* In history-image.c: */
ProcessImage *image_of(History *h, const PdMmap *mmap);
void image_want(History *h, ProcessImage *image, uint32_t pid, uint64_t start, uint64_t end);
/* Asks for its build id, or whether that is still the one of the file. */
void image_ask(History *h, ProcessImage *image, uint32_t pid, uint64_t start, uint64_t end);
/* The request with this number that has no answer yet; NULL: there is none. */
Wanted *wanted_find(const History *h, uint64_t number);
void wanted_end(History *h, Wanted *slot);
void wanted_describe(const Wanted *slot, HistoryWanted *ret);
/* Keeps the image for a while even if nothing maps it. */
void image_retain(History *h, ProcessImage *image);
/* Recordings that owe the image write it in this settle. */
void image_set_due(History *h, ProcessImage *image);
void image_count_unidentified(History *h, ProcessImage *image, bool unidentified);
void images_forget(History *h);
bool image_has_id(const ProcessImage *image);
/* Whether perf would look for symbols in the file at this path. */
bool path_is_file(Bytes path);
/* Whether a data mapping is worth its memory. */
bool mmap_is_needed(const History *h, const PdMmap *mmap);
void image_found(History *h, ProcessImage *image, Bytes build_id);
/* Holds the floor there until the build id of the image is known, at most for a while. */
void image_wait(History *h, ProcessImage *image, uint64_t hold_ns);

/* In history-check.c: */
/* A process maps the file now. */
void check_mapped(History *h, Entry *e, const PdMmap *mmap);
/* Ends checks that took too long. */
void checks_settle(History *h, uint64_t start_ns);
/* All corrections were written. */
void checks_corrected(History *h);
/* The floor must stay at or below this time. */
uint64_t checks_floor(const History *h);
uint64_t checks_since(const History *h);
uint64_t checks_until(const History *h);
/* Whether the recording named a file that is not checked yet. */
bool checks_wait(const History *h, EmissionSet slot);
void checks_let_go(History *h, EmissionSet slot);
void checks_done(History *h);

/* In history-identity.c: */
/* Ends waits that took too long and makes recordings write what they owe. */
void identity_settle(History *h, uint64_t start_ns);
/* The floor must stay below this time while recordings wait. */
uint64_t identity_floor(const History *h);
void identity_done(History *h);

/* In history-kernel.c: */
void kernel_fold(History *h, Bytes record);
void kernel_done(History *h);
void cgroup_learn(History *h, uint64_t id, Bytes path);
Cgroup *cgroup_of(History *h, uint64_t id);
void cgroups_let_go(History *h, EmissionSet slot);
void cgroups_done(History *h);

/* In emission-record.c: */
PdTrailer emission_trailer(const Emission *e, uint32_t pid, uint32_t tid, uint64_t time);
void emission_write_entry(Emission *e, const Entry *entry);
void emission_write_mapping(Emission *e, const PdTrailer *trailer, const ProcessMapping *mapping);
/* Writes a record about the kernel. */
void emission_kernel_record(Emission *e, Bytes record, uint64_t stamp);
/* The image that has the build id of the file; NULL: the recording does not need the mapping. */
ProcessImage *emission_code_of(const Emission *e, ProcessImage *image);
/* Remembers that the recording names the image without a build id; false: no memory. */
bool emission_owe(Emission *e, ProcessImage *image);
void emission_forget_owed(Emission *e);

/* In emission-late.c: */
void emission_write_due(Emission *e);

/* In emission.c: */
void emission_forward(Emission *emission, const Entry *e);
/* Writes the state of a blank process that is known now. */
void emitted_process_fill(EmittedProcess *m);

/* The smallest time that may be written. */
static inline uint64_t history_stamp(const History *h) {
    uint64_t floor = h->floor_ns ? h->floor_ns : h->first_ns;

    return floor ? floor : 1;
}

static inline void history_heard(History *h, uint64_t time) {
    if (time > 0 && (h->first_ns == 0 || time < h->first_ns))
        h->first_ns = time;
}

/* The recording names the image with its known build id. */
static inline void check_shown(const Emission *e, ProcessImage *image) {
    if (image->check)
        image->check->shown |= e->slot;
}

static inline Bytes entry_record(const Entry *e) {
    return (Bytes){.data = e->record, .size = e->size};
}
