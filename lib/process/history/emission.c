/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history-private.h"

#include <errno.h>
#include <string.h>

#include "util/clock.h"

/*
 * What one recording holds of the History: an EmittedProcess for each process, and a bit in each
 * thread and cgroup. A process that existed at the floor is written in its state at the floor,
 * stamped with the floor; what happened since follows with its own times. A process that was born
 * later is forked at its own time. FORK|FORK_EXEC begins each state, so that an earlier life of the
 * pid leaves no mappings behind. EXIT is never written: samples of a thread may come after its
 * EXIT, and newer perf would no longer know the thread.
 *
 * Stamps are never below the floor, because perf sorts by time and may already have passed on older
 * records.
 */

#define PREAMBLE_EARLIER_NS NS_PER_SECOND

int emission_new(History *h, const PdTrailer *trailer, Emission **ret) {
    Emission *e;
    size_t i = 0;

    while (i < EMISSIONS_MAX && h->emissions[i])
        i++;
    if (i == EMISSIONS_MAX)
        return -E2BIG;
    e = calloc(1, sizeof(*e));
    if (!e)
        return -ENOMEM;
    e->history = h;
    e->trailer = *trailer;
    e->slot = (EmissionSet)1 << i;
    h->emissions[i] = e;
    *ret = e;
    return 0;
}

void emission_set_data(Emission *e) {
    e->has_data = true;
}

Emission *emission_free(Emission *e) {
    if (!e)
        return NULL;
    while (e->emitted) {
        for (Task *t = e->emitted->process->tasks; t; t = t->after)
            t->held &= ~e->slot;
        emitted_process_free(e->emitted);
    }
    cgroups_let_go(e->history, e->slot);
    emission_forget_owed(e);
    checks_let_go(e->history, e->slot);
    for (size_t i = 0; i < EMISSIONS_MAX; i++)
        if (e->history->emissions[i] == e)
            e->history->emissions[i] = NULL;
    buffer_done(&e->pending);
    free(e);
    return NULL;
}

static void emission_write_fork(Emission *e, uint32_t pid, uint32_t ppid, uint32_t tid,
                                uint64_t time) {
    PdTrailer trailer = emission_trailer(e, pid, tid, time);
    PdTask task = {.pid = pid, .ppid = ppid, .tid = tid, .ptid = ppid, .time = time};

    pd_emit_task(&e->pending, &trailer, PD_RECORD_FORK, PD_MISC_FORK_EXEC, &task);
}

static void emission_write_comm(Emission *e, uint32_t pid, uint32_t tid, Bytes comm,
                                uint64_t time) {
    PdTrailer trailer = emission_trailer(e, pid, tid, time);

    if (comm.data)
        pd_emit_comm(&e->pending, &trailer, &(PdComm){.pid = pid, .tid = tid, .comm = comm});
}

static void emission_write_maps(Emission *e, uint32_t pid, const ProcessMaps *maps, uint64_t time) {
    PdTrailer trailer = emission_trailer(e, pid, pid, time);
    const ProcessMapping *m;
    size_t at = 0;

    while (maps && (m = maps_next(maps, &at)))
        emission_write_mapping(e, &trailer, m);
}

static Bytes emission_comm_bytes(const ProcessName *comm) {
    return comm ? name_bytes(comm) : (Bytes){};
}

/* If the parent has ended, its pid may belong to a thread of another process. */
static uint32_t emission_living_parent(const History *h, const Process *p) {
    const Process *parent = process_find_born(h, p->ppid, p->birth_ns);

    if (p->pid == 1 || (parent && parent != p && !parent->birth && parent->ended_ns == 0))
        return p->pid == 1 ? 0 : p->ppid;
    return 1;
}

static void emission_write_task(Emission *e, Task *task, uint64_t stamp) {
    uint32_t pid = task->process->pid;

    emission_write_fork(e, pid, pid, task->tid, stamp);
    emission_write_comm(e, pid, task->tid, emission_comm_bytes(task->comm), stamp);
    task->held |= e->slot;
}

/* Writes the state at the floor; writes nothing if the state is unknown. */
static void emission_write_state(Emission *e, const Process *p, uint64_t stamp) {
    if (!p->known && !p->comm && !p->maps)
        return;
    emission_write_fork(e, p->pid, emission_living_parent(e->history, p), p->pid, stamp);
    emission_write_comm(e, p->pid, p->pid, emission_comm_bytes(p->comm), stamp);
    if (p->namespaces) {
        PdTrailer trailer = emission_trailer(e, p->pid, p->pid, stamp);

        pd_emit_record(&e->pending, &trailer,
                       (Bytes){.data = p->namespaces, .size = p->namespaces_size});
    }
    emission_write_maps(e, p->pid, p->before_exec, stamp);
    emission_write_maps(e, p->pid, p->maps, stamp);
}

static EmittedProcess *emission_find(const Emission *e, const Process *p) {
    for (EmittedProcess *m = p->emitted; m; m = m->next)
        if (m->emission == e)
            return m;
    return NULL;
}

/* Writes a thread that existed at the floor; later threads come with their FORK. */
static void emission_hold_task(Emission *e, const Process *p, uint32_t tid, uint64_t stamp) {
    Task *task = tid != p->pid ? task_find(e->history, p, tid) : NULL;

    if (task && task->ended_ns != 0)
        task->ended_ns = MAX(task->ended_ns, stamp);
    if (task && !(task->held & e->slot))
        emission_write_task(e, task, stamp);
}

/* Writes the initial state of a process that was born after the floor, whatever its parent is. */
static void emission_write_born(Emission *e, const Process *p, uint64_t stamp) {
    History *h = e->history;
    ProcessMaps *maps;
    PdBody body;

    entry_parse(p->birth, &body);
    emission_write_fork(e, p->pid, body.task.ppid, p->pid, stamp);
    emission_write_comm(e, p->pid, p->pid, comm_at(h, p, p->pid, p->birth_ns), stamp);
    maps = maps_at(h, p, p->birth_ns);
    emission_write_maps(e, p->pid, maps, stamp);
    maps_put(&h->strings, maps);
}

/* A child of a process that was written in full needs only its FORK. */
static void emission_write_birth(Emission *e, const Process *p) {
    History *h = e->history;
    const Process *parent;
    const EmittedProcess *m;
    PdBody body;

    entry_parse(p->birth, &body);
    parent = process_find_born(h, body.task.ppid, p->birth_ns);
    m = parent && parent != p ? emission_find(e, parent) : NULL;
    if (!m || m->blank || p->based) {
        emission_write_born(e, p, MAX(p->birth_ns, history_stamp(h)));
        return;
    }
    emission_hold_task(e, parent, body.task.ptid, history_stamp(h));
    emission_write_entry(e, p->birth);
}

void emission_forward(Emission *e, const Entry *entry) {
    uint32_t type = load_u32(entry->record, false);
    PdBody body;

    if (type == PD_RECORD_EXIT)
        return;
    if (type == PD_RECORD_FORK) {
        entry_parse(entry, &body);
        /* This FORK introduced the process in another recording; here the process exists
         * already. */
        if (body.task.tid == body.task.pid)
            return;
        /* perf names a new thread after the thread that created it. */
        emission_hold_task(e, entry->process, body.task.ptid, history_stamp(e->history));
    }
    emission_write_entry(e, entry);
}

static void emission_write_queue(Emission *e, const Process *p) {
    for (const Entry *entry = p->queue.first; entry; entry = entry->next)
        if (entry != p->birth)
            emission_forward(e, entry);
}

static EmittedProcess *emission_hold(Emission *e, Process *p, uint64_t stamp) {
    EmittedProcess *m = budget_alloc(&e->history->strings.budget, sizeof(*m));

    if (!m) {
        e->history->dropped++;
        return NULL;
    }
    *m = (EmittedProcess){.next = p->emitted, .after = e->emitted, .process = p, .emission = e};
    if (m->after)
        m->after->before = m;
    p->emitted = e->emitted = m;
    m->blank = !p->known || p->waits_on;
    m->stamp_ns = stamp;
    m->floor_ns = e->history->floor_ns;
    if (p->birth)
        emission_write_birth(e, p);
    else
        emission_write_state(e, p, stamp);
    emission_write_queue(e, p);
    return m;
}

/*
 * Writes the threads again too, because those that were sampled while the process was blank are not
 * remembered. The process was already begun as of its birth, and a FORK at the same moment would be
 * ambiguous, so the whole state is written again.
 */
void emitted_process_fill(EmittedProcess *m) {
    const Process *p = m->process;
    uint64_t stamp = history_stamp(m->emission->history);

    if (!m->blank)
        return;
    m->blank = false;
    if (p->birth) {
        stamp = MAX(stamp, p->birth_ns);
        emission_write_born(m->emission, p, stamp);
    } else {
        /* Its first sample may be older than the floor. */
        if (m->floor_ns == m->emission->history->floor_ns)
            stamp = MIN(stamp, m->stamp_ns);
        emission_write_state(m->emission, p, stamp);
    }
    for (Task *t = p->tasks; t; t = t->after)
        emission_write_task(m->emission, t, stamp);
}

static void emission_need_cgroup(Emission *e, uint64_t id, uint64_t stamp) {
    PdTrailer trailer = emission_trailer(e, 0, 0, stamp);
    Cgroup *c = cgroup_of(e->history, id);

    if (!c)
        return;
    e->recent_cgroup = id;
    if (c->held & e->slot)
        return;
    c->held |= e->slot;
    pd_emit_cgroup(&e->pending, &trailer, &(PdCgroup){.id = id, .path = name_bytes(c->path)});
}

static Process *emission_find_or_make(History *h, uint32_t pid, uint64_t time) {
    Process *p = process_find(h, pid, time);

    if (!p && (p = process_new(h, pid, 0))) {
        process_set_unknown(h, p);
        p = process_end(h, p, time);
    } else if (p && p->ended_ns != 0)
        p->ended_ns = MAX(p->ended_ns, time);
    return p;
}

static bool emission_is_newest(const Emission *e, const Process *p) {
    return process_find_born(e->history, p->pid, UINT64_MAX) == p;
}

static void emission_need_process(Emission *e, uint32_t pid, uint32_t tid, uint64_t time,
                                  uint64_t stamp) {
    Recent *recent = &e->recent[tid % RECENT_MAX];
    Process *p;

    if (recent->tid == tid && recent->pid == pid && recent->generation == e->history->generation &&
        time >= recent->from_ns)
        return;
    p = emission_find_or_make(e->history, pid, time);
    if (!p || (!emission_find(e, p) && !emission_hold(e, p, stamp)))
        return;
    emission_hold_task(e, p, tid, stamp);
    if (emission_is_newest(e, p))
        *recent = (Recent){e->history->generation, p->birth_ns, pid, tid};
}

int emission_need(Emission *e, uint32_t pid, uint32_t tid, uint64_t time, uint64_t cgroup) {
    uint64_t stamp;

    history_heard(e->history, time);
    /* A sample that was in progress when the floor was noted may be older than the floor. */
    stamp = history_stamp(e->history);
    stamp = time > 0 && time < stamp ? time : stamp;
    if (cgroup != 0 && cgroup != e->recent_cgroup)
        emission_need_cgroup(e, cgroup, stamp);
    if ((int32_t)pid > 0 && (int32_t)tid > 0)
        emission_need_process(e, pid, tid, time, stamp);
    return buffer_error(&e->pending);
}

int emission_preamble(Emission *e, Buffer *out) {
    uint64_t stamp = history_stamp(e->history);
    Buffer pending = e->pending;

    /* No record was passed on yet, so the preamble may be earlier than samples that were in
     * progress. */
    stamp -= MIN(stamp - 1, PREAMBLE_EARLIER_NS);

    e->pending = *out;
    e->begun = true;
    for (const KernelRecord *k = e->history->oldest_kernel; k; k = k->newer)
        emission_kernel_record(e, (Bytes){.data = k->record, .size = k->size}, stamp);
    emission_write_queue(e, &e->history->kernel);
    *out = e->pending;
    e->pending = pending;
    return buffer_error(out);
}

Buffer *emission_pending(Emission *e) {
    return &e->pending;
}
