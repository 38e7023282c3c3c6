/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The process table of a recorder, over time: for each process its state at a floor S, and what
 * happened to it since, as the kernel told it. From it any number of recordings, each with an
 * Emission of its own, get the side-band that their samples need, and nothing else: on the first
 * sample of a process its state as of S, stamped S, then all its own side-band since, then what
 * comes. So a new recording costs what is sampled in it, not what runs, and reads no /proc.
 *
 * Side-band is fed as it is drained, CPU by CPU; history_settle() puts it in order of time. Times
 * are those of the samples' clock. What exited is
 * dropped when the floor is two seconds beyond its end and no sample asked for it since.
 */

#include "perfdata/event/event.h"
#include "perfdata/writer/emit.h"
#include "process/table/table.h"

typedef struct History History;
typedef struct Emission Emission;

int history_new(const ProcessLimits *limits, History **ret);
History *history_free(History *history);
DEFINE_CLEANUP(History *, history_free);

/*
 * A record of the side-band ring (FORK, EXIT, COMM, MMAP2, KSYMBOL, BPF_EVENT, CGROUP, NAMESPACES,
 * LOST; others pass by) in host order with its trailer; `event` is the side-band event. -EBADMSG:
 * it does not hold what its type announces, or has no time. What finds no room is counted.
 */
int history_feed(History *history, const PdRecord *record, const PdEvent *event);
/*
 * All side-band that was there at start_ns is fed: sorts it into the processes, and hands to each
 * Emission what belongs to those it holds already. start_ns is the sweep's start: read from the
 * clock after the last head of a sample ring was noted, and before the first side-band ring was
 * drained. What was fed beyond it waits, since rings are drained one after the other and so what
 * came first may not be here yet. UINT64_MAX: there will be no more.
 */
int history_settle(History *history, uint64_t start_ns);
/*
 * The sweep that noted its heads at start_ns is complete: the floor moves to the start of the one
 * before, and what is older is folded away. Nothing that an Emission hands out is older than the
 * floor, so a FINISHED_ROUND may follow a sweep whenever the floor is not below the start of the
 * sweep that the last FINISHED_ROUND of the recording followed.
 */
void history_complete(History *history, uint64_t start_ns);
/*
 * What was fed so far is what an earlier recorder wrote up to floor_ns and beyond: settles it, and
 * the floor is there. Rings that it had drained in part hold some of that still: it is not taken in
 * again, or it would undo what came after it and is in no ring any more.
 */
int history_resume(History *history, uint64_t floor_ns);
/* Before the second sweep is complete: the least time that was heard of, 0 if none. */
uint64_t history_floor(const History *history);

/* What one process was while nothing happened to it, read from /proc between begin_ns and end_ns.
 */
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
    const PdMmap *maps; /* executable ones, in order of address */
    size_t n_maps;
    BaselineNamespace namespaces[BASELINE_NAMESPACES];
    bool has_namespaces; /* they were read */
    bool is_kernel_thread;
    bool force; /* as it is, though side-band came meanwhile */
} Baseline;

/*
 * 0: taken in. 1: side-band of this process came between begin_ns and end_ns, read it again.
 * -EAGAIN: too early, a sweep that began after end_ns has to settle first. A process that is known
 * already (a resync) is compared; what differs is entered as having happened right after what
 * was heard of it last, at the floor at the earliest, and counted.
 */
int history_install(History *history, const Baseline *baseline);
/* When the kernel told of the fork of the process that has this pid now, and who forked it; 0: it
 * did not, or nobody has that pid. */
uint64_t history_birth(const History *history, uint32_t pid, uint32_t *ret_ppid);
/* What a resync from begin_ns on did not find, and of which nothing was heard since, is gone. */
int history_sweep_missing(History *history, uint64_t begin_ns);
/* A process of which samples or side-band told, and no baseline, each told once: 1, or 0 when there
 * is none (now). */
int history_next_unknown(History *history, uint32_t *ret_pid);
/*
 * Kernel text, modules, BPF images that were there before: kept, and written at the head of every
 * recording. `records` are whole MMAP, MMAP2, KSYMBOL and BPF_EVENT records without trailer. In a
 * later call only maps count, and take the place of those of the call before; what is new among
 * them goes to the Emissions too.
 */
int history_install_kernel(History *history, Bytes records);
/* The path of a cgroup by id, from a walk of cgroup2; CGROUP records are heard by themselves. */
int history_install_cgroup(History *history, uint64_t id, Bytes path);
/* Images whose build id nobody has looked up yet, each told once, with a process that has it
 * mapped: 1, or 0 when there is none (now). */
typedef struct HistoryWanted {
    uint64_t image; /* names it to history_set_build_id() */
    uint32_t pid;
    uint64_t start, end;
    char path[PROCESS_NAME_MAX + 1];
    uint32_t major, minor;
    uint64_t inode, generation;
} HistoryWanted;
int history_next_wanted(History *history, HistoryWanted *ret);
/* The last one that history_next_wanted() returned cannot be looked up now; it returns it again. */
void history_put_back_wanted(History *history);
/* From then on every MMAP2 of that image is written with it (MISC_MMAP_BUILD_ID). Empty: it has
 * none, or it could not be read. An image that went meanwhile is ignored. */
void history_set_build_id(History *history, uint64_t image, Bytes build_id);

/* The build id of the code that the kernel maps into 64-bit processes as [vdso]: no file has it, so
 * it cannot be looked up. Before anything is fed. */
void history_set_vdso(History *history, Bytes build_id);

/*
 * What happens to mappings of files without a build id, which perf would name from whatever file is
 * at the path when it reads the recording.
 */
typedef enum HistoryIdentify {
    HISTORY_AS_TOLD, /* they are written as they are */
    HISTORY_MARKS,   /* PD_NO_BUILD_ID ends their names */
    /* So too, but where history_next_wanted() was asked and the answer is to come they are held
     * back, for 3 s at most. They are written with their own times then: the floor waits too. */
    HISTORY_ASKS,
} HistoryIdentify;
void history_set_identify(History *history, HistoryIdentify identify);
/* When the longest wait for an answer ends; 0: no recording waits for one. Where answers came,
 * the next history_settle() writes them. */
uint64_t history_waits_until(const History *history);
/* start_ns of the sweep in which the oldest mapping was held back that is not written yet;
 * UINT64_MAX: there is none. */
uint64_t history_waits_since(const History *history);
/*
 * Another recording of the same moment tells the build id of what `mmap` maps. True: the mapping is
 * known without a build id, and has one now, in all processes that map it.
 */
bool history_learn_build_id(History *history, const PdMmap *mmap, uint64_t time);

/*
 * From now on mappings of files that are read and not executed are kept too, or no longer: with
 * them perf unwinds stacks, since an ELF file has its unwind tables there. They take up to half of
 * the memory, so that there is always room for code.
 */
void history_keep_data(History *history, bool keep);
/* Before sweeps that start at until_ns the floor stays: what Baselines will tell of processes that
 * are known is to hold for samples that come meanwhile. 0: go on. */
void history_hold_floor(History *history, uint64_t until_ns);

/* One recording. `trailer` gives sample_type and id of all emitted records; those of the kernel
 * keep the rest of theirs. -E2BIG: there are 64 already. To be freed before its History. */
int emission_new(History *history, const PdTrailer *trailer, Emission **ret);
Emission *emission_free(Emission *emission);
/* It has stacks to unwind, and gets the data mappings of the files that are executed. Before
 * anything else. */
void emission_set_data(Emission *emission);
DEFINE_CLEANUP(Emission *, emission_free);
/* The head of a recording: kernel and module maps, BPF images, stamped a second before the floor.
 */
int emission_preamble(Emission *emission, Buffer *out);
/* Before a sample is written: what it needs that the recording does not hold yet is appended to
 * emission_pending(). Samples with tid 0 or below 0 need nothing. */
int emission_need(Emission *emission, uint32_t pid, uint32_t tid, uint64_t time, uint64_t cgroup);
/* What is to be written before the samples at hand; the caller takes it and clears it. */
Buffer *emission_pending(Emission *emission);
/* Mappings are held back. */
bool emission_waits(const Emission *emission);
/* Appends the mappings that are held back, without a build id. */
void emission_release(Emission *emission);

/* What a thread was called at a time after the floor; borrowed until the next call, empty: nobody
 * said. */
Bytes history_comm(const History *history, uint32_t pid, uint32_t tid, uint64_t time);

typedef struct HistoryCounts {
    uint64_t processes, threads, images; /* threads: of processes that existed at the floor */
    uint64_t queued;                     /* records since the floor */
    uint64_t unknown;                    /* processes that no baseline told */
    uint64_t memory_bytes;
    uint64_t inferred;     /* facts that a resync found and no record told */
    uint64_t dropped;      /* for want of room */
    uint64_t late;         /* records older than the floor */
    uint64_t lost;         /* side-band records that the kernel could not place, from LOST */
    uint64_t unidentified; /* files whose build id was looked up and not found */
} HistoryCounts;

HistoryCounts history_counts(const History *history);
