/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The process table of a recorder over time: for each process its state at a floor S, and the
 * side-band of the kernel since S. Any number of recordings, each with an Emission, get from it the
 * side-band that their samples need and nothing else: on the first sample of a process its state as
 * of S, stamped S, then all its side-band since S, then what follows. So a new recording costs what
 * is sampled in it, not what runs, and reads no /proc.
 *
 * Side-band is fed as it is drained, CPU by CPU; history_settle() sorts it by time. Times are those
 * of the samples' clock. A process that has exited is dropped when the floor is two seconds beyond
 * its end and no sample has needed it since.
 */

#include "perfdata/event/event.h"
#include "perfdata/writer/emit.h"
#include "process/maps.h"
#include "process/table/table.h"

typedef struct History History;
typedef struct Emission Emission;

int history_new(const ProcessLimits *limits, History **ret);
History *history_free(History *history);
DEFINE_CLEANUP(History *, history_free);

/*
 * Feeds a record of the side-band ring (FORK, EXIT, COMM, MMAP2, KSYMBOL, BPF_EVENT, CGROUP,
 * NAMESPACES, LOST; others are ignored) in host byte order with its trailer; `event` is the
 * side-band event. -EBADMSG: it is shorter than its type requires, or has no time. Records for
 * which there is no memory are counted.
 */
int history_feed(History *history, const PdRecord *record, const PdEvent *event);
/*
 * All side-band up to start_ns has been fed: sorts it into the processes, and passes to each
 * Emission the records of the processes that it holds. start_ns is the start of the sweep: read
 * from the clock after the last head of a sample ring was noted and before the first side-band ring
 * was drained. Later records wait, because rings are drained one after the other and earlier
 * records may be missing. UINT64_MAX: no more records will come.
 */
int history_settle(History *history, uint64_t start_ns);
/*
 * The sweep that noted its heads at start_ns is complete: the floor moves to the start of the sweep
 * before it, and older records are folded into the state. An Emission emits nothing older than the
 * floor. So a FINISHED_ROUND may follow a sweep whenever the floor is not below the start of the
 * sweep that the recording's last FINISHED_ROUND followed.
 */
void history_complete(History *history, uint64_t start_ns);
/*
 * What was fed so far is what an earlier recorder wrote, up to floor_ns and beyond: settles it and
 * sets the floor there. Rings that the earlier recorder drained in part still hold some of these
 * records. They are not accepted again, since they would undo later records that are no longer in
 * any ring.
 */
int history_resume(History *history, uint64_t floor_ns);
/* Before the second sweep is complete: the smallest time that was fed, 0 if none. */
uint64_t history_floor(const History *history);

/* The state of one process, read from /proc between begin_ns and end_ns, if no side-band of it came
 * meanwhile. */
typedef struct BaselineThread {
    uint32_t tid;
    const char *comm;
} BaselineThread;
typedef struct BaselineNamespace {
    uint64_t dev, inode;
} BaselineNamespace;
enum { BASELINE_NAMESPACES = 7 }; /* in the order of the kernel's NAMESPACES record */
typedef struct Baseline {
    uint32_t pid, ppid;
    uint64_t begin_ns, end_ns;
    const BaselineThread *threads; /* the leader first */
    size_t n_threads;
    const PdMmap *maps; /* executable ones, sorted by address */
    size_t n_maps;
    BaselineNamespace namespaces[BASELINE_NAMESPACES];
    bool has_namespaces; /* the namespaces were read */
    bool is_kernel_thread;
    bool force; /* accept it even if side-band came meanwhile */
} Baseline;

/*
 * 0: accepted. 1: side-band of this process came between begin_ns and end_ns, read it again.
 * -EAGAIN: too early, a sweep that began after end_ns has to settle first. A process that is known
 * already (a resync) is compared; each difference is counted and entered as a record right after
 * its last known record, but not before the floor.
 */
int history_install(History *history, const Baseline *baseline);
/* When the process that now has this pid was forked, and by whom, from its FORK record; 0: there
 * was no record, or no process has that pid. */
uint64_t history_birth(const History *history, uint32_t pid, uint32_t *ret_ppid);
/* Ends processes that a resync since begin_ns did not find and that had no side-band since. */
int history_sweep_missing(History *history, uint64_t begin_ns);
/* Returns a process that has samples or side-band but no baseline, each once: 1, or 0 when there is
 * none (now). */
int history_next_unknown(History *history, uint32_t *ret_pid);
/*
 * Kernel text, modules and BPF images that were there before: kept, and written at the start of
 * every recording. `records` are whole MMAP, MMAP2, KSYMBOL and BPF_EVENT records without trailer.
 * In a later call only the maps are used, and they replace those of the previous call; new ones
 * also go to the Emissions.
 */
int history_install_kernel(History *history, Bytes records);
/* The path of a cgroup by id, from a walk of cgroup2; CGROUP records need no call. */
int history_install_cgroup(History *history, uint64_t id, Bytes path);
/* Returns an image whose build id nobody has looked up yet, or that was mapped anew since then,
 * with a process that maps it: 1, or 0 when there is none (now). */
typedef struct HistoryWanted {
    uint64_t image; /* identifies it in history_set_build_id() or history_set_checked() */
    bool checks;    /* the build id is known: is the content still that version? */
    uint64_t version;
    uint32_t pid;
    uint64_t start, end;
    char path[PROCESS_NAME_MAX + 1];
    uint32_t major, minor;
    uint64_t inode, generation;
} HistoryWanted;
int history_next_wanted(History *history, HistoryWanted *ret);
/* The image that history_next_wanted() returned last cannot be looked up now; it will be returned
 * again. */
void history_put_back_wanted(History *history);
/* From now on every MMAP2 of that image is written with the build id (MISC_MMAP_BUILD_ID). Empty:
 * it has none, or it could not be read. Ignored if the image is gone. `version`: any number that
 * another content of the file does not have. */
void history_set_build_id(History *history, uint64_t image, Bytes build_id, uint64_t version);
typedef enum HistoryVerdict {
    HISTORY_SAME,     /* it has had the same content since its build id was read */
    HISTORY_CHANGED,  /* it was written to, the last time at changed_ns */
    HISTORY_UNPROVEN, /* it could not be looked at */
} HistoryVerdict;
/* The answer to a HistoryWanted that checks. True: the file has changed; *ret_changed says which.
 */
bool history_set_checked(History *history, uint64_t image, HistoryVerdict verdict,
                         uint64_t changed_ns, HistoryWanted *ret_changed);
/* Whether answers came that the next history_settle() writes, and no recording waits for more. */
bool history_has_answers(const History *history);

/* The build id of the [vdso] code of 64-bit processes: it is in no file, so it cannot be looked up.
 * Call it before anything is fed. */
void history_set_vdso(History *history, Bytes build_id);

/*
 * How to write mappings of files without a build id. perf would take their symbols from whatever
 * file is at the path when it reads the recording.
 */
typedef enum HistoryIdentify {
    HISTORY_UNCHANGED, /* written unchanged */
    HISTORY_MARKS,     /* written with PD_NO_BUILD_ID appended to their names */
    /* The same, and when a lookup through history_next_wanted() has found the build id, the mapping
     * is written again. It has its own time if that takes at most 3 s, because the floor waits. */
    HISTORY_ASKS,
} HistoryIdentify;
void history_set_identify(History *history, HistoryIdentify identify);
/* When the longest wait for a lookup or a check ends; 0: nothing waits. The next history_settle()
 * writes what was found. */
uint64_t history_waits_until(const History *history);
/* start_ns of the sweep in which the oldest mapping arrived that still waits for its build id, or
 * for a check of it; UINT64_MAX: there is none. */
uint64_t history_waits_since(const History *history);
/*
 * Another recording of the same moment has the build id of `mmap`. True: the mapping was known
 * without a build id and has one now, in all processes that map it.
 */
bool history_learn_build_id(History *history, const PdMmap *mmap, uint64_t time);

/*
 * Starts or stops keeping mappings of files that are readable and not executable: perf needs them
 * to unwind stacks, since an ELF file has its unwind tables there. They take up to half of the
 * memory, so that there is always room for code.
 */
void history_keep_data(History *history, bool keep);
/* Keeps the floor until sweeps that start at until_ns or later: coming Baselines of known processes
 * shall hold for samples that are taken meanwhile. 0: release it. */
void history_hold_floor(History *history, uint64_t until_ns);

/* Adds a recording. `trailer` has sample_type and id of all emitted records; records about the
 * kernel keep the rest of their own trailer. -E2BIG: there are 64 already. Free it before its
 * History. */
int emission_new(History *history, const PdTrailer *trailer, Emission **ret);
Emission *emission_free(Emission *emission);
/* The recording has stacks to unwind and gets the data mappings of files that are executed. Call it
 * before anything else. */
void emission_set_data(Emission *emission);
DEFINE_CLEANUP(Emission *, emission_free);
/* The start of a recording: kernel and module maps and BPF images, stamped one second before the
 * floor. */
int emission_preamble(Emission *emission, Buffer *out);
/* Call it before a sample is written: appends to emission_pending() what the sample needs and the
 * recording does not hold yet. Samples with a tid of 0 or below need nothing. */
int emission_need(Emission *emission, uint32_t pid, uint32_t tid, uint64_t time, uint64_t cgroup);
/* What must be written before the current samples; the caller takes and clears it. */
Buffer *emission_pending(Emission *emission);
/* Whether mappings of it wait for their build ids. */
bool emission_waits(const Emission *emission);

/* The name of a thread at a time after the floor; borrowed until the next call; empty: unknown. */
Bytes history_comm(const History *history, uint32_t pid, uint32_t tid, uint64_t time);

/* A number that changes when anything does in what processes map. */
uint64_t history_generation(const History *history);
/* What the process maps at a time after the floor. Borrowed until the next call for another process
 * or time, or the next change of the history. NULL: what it maps is not known yet. */
const ProcessMaps *history_maps(History *history, uint32_t pid, uint64_t time);

typedef struct HistoryCounts {
    uint64_t processes, threads, images; /* threads: of processes that existed at the floor */
    uint64_t queued;                     /* records since the floor */
    uint64_t unknown;                    /* processes without a baseline */
    uint64_t memory_bytes;
    uint64_t inferred;     /* facts that a resync found without a record */
    uint64_t dropped;      /* because there was no memory */
    uint64_t late;         /* records older than the floor */
    uint64_t lost;         /* side-band records that the kernel dropped, from LOST */
    uint64_t unidentified; /* files whose build id was looked up and not found */
} HistoryCounts;

HistoryCounts history_counts(const History *history);
