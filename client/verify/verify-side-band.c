/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "client/file/replay.h"
#include "client/verify/verify-state.h"
#include "util/hash-index.h"

/*
 * Samples whose thread has no name or whose address is in no mapping, by process. Both mean that
 * side-band is missing: it was lost, written too late, or never recorded. The processes with most
 * of them are listed one by one, the rest as a sum.
 */

enum {
    PROCESSES_MAX = 65536,
    LISTED_MAX = 10,
};

typedef struct Process {
    uint32_t pid;
    uint64_t samples, no_comm, no_map;
    char comm[17];
} Process;

struct SideBand {
    Replay *replay;
    Process *processes;
    HashIndex index; /* of processes by pid */
    uint64_t no_kernel_map, too_many;
};

static Process *verify_side_band_find(SideBand *s, uint32_t pid) {
    uint32_t number;
    Process *p;

    for (size_t probe = 0; (number = hash_index_next(&s->index, pid, &probe)) > 0;)
        if (s->processes[number - 1].pid == pid)
            return &s->processes[number - 1];
    p = s->index.n < PROCESSES_MAX ? hash_index_append(&s->index, pid, &s->processes) : NULL;
    if (p)
        p->pid = pid;
    return p;
}

static int verify_side_band_on_sample(ProcessTable *table, const ReplaySample *sample, void *arg) {
    SideBand *s = arg;
    ProcessAnswer comm, dso;
    Process *p;

    /* A sample after the end of its thread has no pid. */
    if (sample->pid == UINT32_MAX)
        return 0;
    dso = process_table_dso(table, sample->pid, sample->tid, sample->cpumode, sample->ip, NULL);
    if (sample->cpumode == PD_MISC_KERNEL && sample->ip != 0)
        s->no_kernel_map += !dso.known;
    comm = process_table_comm(table, sample->pid, sample->tid);
    p = verify_side_band_find(s, sample->pid);
    if (!p) {
        s->too_many++;
        return 0;
    }
    p->samples++;
    p->no_comm += !comm.known;
    if (sample->cpumode == PD_MISC_USER && sample->ip != 0)
        p->no_map += !dso.known;
    if (comm.known && !p->comm[0])
        memcpy(p->comm, comm.name->text, MIN((size_t)comm.name->size, sizeof(p->comm) - 1));
    return 0;
}

int side_band_new(PdReader *reader, SideBand **ret) {
    _cleanup_(side_band_freep) SideBand *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return -ENOMEM;
    r = replay_new(reader, NULL, verify_side_band_on_sample, s, &s->replay);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(s);
    return 0;
}

SideBand *side_band_free(SideBand *s) {
    if (!s)
        return NULL;
    replay_free(s->replay);
    free(s->processes);
    hash_index_done(&s->index);
    free(s);
    return NULL;
}

int side_band_add(SideBand *s, const PdRecord *record, const PdStamp *stamp) {
    return replay_add(s->replay, record, stamp);
}

static int verify_side_band_by_no_comm(const void *x, const void *y) {
    const Process *a = x, *b = y;

    if (a->no_comm != b->no_comm)
        return a->no_comm < b->no_comm ? 1 : -1;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

static int verify_side_band_by_no_map(const void *x, const void *y) {
    const Process *a = x, *b = y;

    if (a->no_map != b->no_map)
        return a->no_map < b->no_map ? 1 : -1;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

static void verify_side_band_report_comms(SideBand *s, Findings *findings) {
    uint64_t rest = 0, n_rest = 0;

    qsort(s->processes, s->index.n, sizeof(*s->processes), verify_side_band_by_no_comm);
    for (size_t i = 0; i < s->index.n && s->processes[i].no_comm > 0; i++) {
        const Process *p = &s->processes[i];

        if (i < LISTED_MAX) {
            findings_add(findings, SEVERITY_WARNING, "comm", NULL, p->no_comm,
                         "%" PRIu64 " of %" PRIu64 " samples of process %" PRIi32
                         " are of threads without a name",
                         p->no_comm, p->samples, (int32_t)p->pid);
            continue;
        }
        rest += p->no_comm;
        n_rest++;
    }
    if (n_rest > 0)
        findings_add(findings, SEVERITY_WARNING, "comm", NULL, rest,
                     "%" PRIu64 " samples of %" PRIu64
                     " further processes are of threads without a name",
                     rest, n_rest);
}

static void verify_side_band_report_maps(SideBand *s, Findings *findings) {
    uint64_t rest = 0, n_rest = 0;

    qsort(s->processes, s->index.n, sizeof(*s->processes), verify_side_band_by_no_map);
    for (size_t i = 0; i < s->index.n && s->processes[i].no_map > 0; i++) {
        const Process *p = &s->processes[i];

        if (i < LISTED_MAX) {
            findings_add(findings, SEVERITY_WARNING, "mapping", NULL, p->no_map,
                         "%" PRIu64 " of %" PRIu64 " samples of process %" PRIi32
                         "%s%s%s lie in no mapping",
                         p->no_map, p->samples, (int32_t)p->pid, p->comm[0] ? " (" : "", p->comm,
                         p->comm[0] ? ")" : "");
            continue;
        }
        rest += p->no_map;
        n_rest++;
    }
    if (n_rest > 0)
        findings_add(findings, SEVERITY_WARNING, "mapping", NULL, rest,
                     "%" PRIu64 " samples of %" PRIu64 " further processes lie in no mapping", rest,
                     n_rest);
}

int side_band_end(SideBand *s, Findings *findings) {
    ProcessCounts counts;
    int r = replay_finish(s->replay);

    if (r < 0)
        return r;
    if (s->index.n > 0) {
        verify_side_band_report_comms(s, findings);
        verify_side_band_report_maps(s, findings);
    }
    if (s->no_kernel_map > 0)
        findings_add(findings, SEVERITY_WARNING, "mapping", NULL, s->no_kernel_map,
                     "%" PRIu64 " sample%s of the kernel lie%s in no mapping of it",
                     s->no_kernel_map, s->no_kernel_map == 1 ? "" : "s",
                     s->no_kernel_map == 1 ? "s" : "");
    if (s->too_many > 0)
        findings_add(findings, SEVERITY_NOTE, "side-band", NULL, s->too_many,
                     "%" PRIu64 " samples are of more processes than verify checks", s->too_many);
    counts = process_table_counts(replay_table(s->replay));
    if (counts.dropped > 0)
        findings_add(findings, SEVERITY_NOTE, "side-band", NULL, counts.dropped,
                     "%" PRIu64 " processes and mappings do not fit into the memory for them",
                     counts.dropped);
    return 0;
}
