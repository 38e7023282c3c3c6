/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "process/history/history-private.h"
#include "util/array.h"

/*
 * Computes the state of a process at a moment after the floor. It is not stored but computed from
 * the state at the floor and the records since. For a process that was born after the floor, it is
 * computed from the state of its parent at that moment, up to an ancestor that existed at the
 * floor. This is needed when such a process is first sampled and its parent is not in the
 * recording.
 */

enum { ANCESTORS_MAX = 4096 };

void maps_apply(History *h, ProcessMaps **maps, const PdMmap *mmap, ProcessImage *image) {
    ProcessMapping mapping;
    int r = -ENOMEM;

    if (!mapping_range(mmap, &mapping))
        return;
    if (!*maps)
        *maps = maps_new(&h->strings);
    if (*maps && image) {
        mapping.image = image_ref(image);
        r = maps_insert(&h->strings, maps, &mapping);
    } else if (*maps)
        /* An unknown mapping is better than showing the old one. */
        (void)maps_remove(&h->strings, maps, mapping.start, mapping.end);
    h->dropped += r < 0;
}

static const Process *history_state_parent_of(const History *h, const Process *p,
                                              PdTask *ret_fork) {
    const Process *parent;
    PdBody body;

    entry_parse(p->birth, &body);
    parent = process_find_born(h, body.task.ppid, p->birth_ns);
    *ret_fork = body.task;
    return parent != p ? parent : NULL;
}

/* The record that last named the thread: a COMM, or its FORK. */
static const Entry *history_state_named_by(const Process *p, uint32_t tid, uint64_t time,
                                           PdRecord *ret, PdBody *ret_body) {
    const Entry *found = NULL;

    for (const Entry *e = p->queue.first; e && e->time < time; e = e->next) {
        PdBody body;
        PdRecord record = entry_parse(e, &body);

        if ((record.type != PD_RECORD_COMM || body.comm.tid != tid) &&
            (record.type != PD_RECORD_FORK || body.task.tid != tid || tid == p->pid))
            continue;
        found = e;
        *ret = record;
        *ret_body = body;
    }
    return found;
}

static Bytes history_state_name_or_nothing(const ProcessName *name) {
    return name ? name_bytes(name) : (Bytes){};
}

Bytes comm_at(const History *h, const Process *p, uint32_t tid, uint64_t time) {
    for (unsigned i = 0; p && i < ANCESTORS_MAX; i++) {
        PdRecord record;
        PdBody body;
        PdTask fork;
        const Entry *e = history_state_named_by(p, tid, time, &record, &body);

        if (e && record.type == PD_RECORD_COMM)
            return body.comm.comm;
        if (e) {
            tid = body.task.ptid;
            time = e->time;
            continue;
        }
        if (tid != p->pid) {
            const Task *task = task_find(h, p, tid);

            return history_state_name_or_nothing(task ? task->comm : NULL);
        }
        if (!p->birth || p->based)
            return history_state_name_or_nothing(p->comm);
        time = p->birth_ns;
        p = history_state_parent_of(h, p, &fork);
        tid = fork.ptid;
    }
    return (Bytes){};
}

Bytes history_comm(const History *h, uint32_t pid, uint32_t tid, uint64_t time) {
    const Process *p = process_find(h, pid, time);

    return p ? comm_at(h, p, tid, time + 1) : (Bytes){};
}

void maps_replay(History *h, const Process *p, const Entry *first, uint64_t time,
                 ProcessMaps **maps) {
    for (const Entry *e = first; e && e->time < time; e = e->next) {
        PdBody body;
        PdRecord record = entry_parse(e, &body);

        if (record.type == PD_RECORD_MMAP2)
            maps_apply(h, maps, &body.mmap, e->image);
        else if (record.type == PD_RECORD_COMM && body.comm.exec && body.comm.tid == p->pid)
            *maps = maps_put(&h->strings, *maps);
        else if (record.type == PD_RECORD_FORK && body.task.tid == p->pid && e != p->birth)
            *maps = maps_put(&h->strings, *maps);
    }
}

typedef struct Ancestor {
    const Process *process;
    uint64_t until;
} Ancestor;

ProcessMaps *maps_at(History *h, const Process *p, uint64_t time) {
    _cleanup_free_ Ancestor *line = NULL;
    ProcessMaps *maps = NULL;
    size_t n = 0;
    PdTask fork;

    for (; p && n < ANCESTORS_MAX; p = history_state_parent_of(h, p, &fork)) {
        Ancestor *next = array_grow(&line, &n);

        if (!next) {
            h->dropped++;
            return NULL;
        }
        *next = (Ancestor){.process = p, .until = time};
        if (!p->birth || p->based) {
            maps = p->maps ? maps_ref(p->maps) : NULL;
            break;
        }
        time = p->birth_ns;
    }
    while (n-- > 0)
        maps_replay(h, line[n].process, line[n].process->queue.first, line[n].until, &maps);
    return maps;
}
