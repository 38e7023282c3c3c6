/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history-private.h"

/*
 * The life of a record in the History. After settling it is in the list of all records and in the
 * list of its process, and was passed to the recordings that hold the process. When the floor
 * passes it, it is folded: it changes the state at the floor and is freed. Folding is in order of
 * time, so a fork finds its parent exactly in its state at that moment.
 */

static EmissionSet history_entry_holders_of(const Process *p) {
    EmissionSet held = 0;

    for (const EmittedProcess *m = p->emitted; m; m = m->next)
        held |= m->emission->slot;
    return held;
}

static ProcessName *history_entry_comm_of(const History *h, const Process *p, uint32_t tid) {
    const Task *task = tid != p->pid ? task_find(h, p, tid) : NULL;
    ProcessName *comm = tid == p->pid ? p->comm : task ? task->comm : NULL;

    return comm ? name_ref(comm) : NULL;
}

static void history_entry_fold_birth(History *h, Process *p, const PdTask *fork) {
    const Process *parent;

    process_free_older(h, p);
    parent = process_find_born(h, fork->ppid, p->birth_ns);
    if (!p->based && parent && parent != p) {
        process_set_comm(h, p, history_entry_comm_of(h, parent, fork->ptid), p->birth_ns);
        p->maps = maps_put(&h->strings, p->maps);
        p->maps = parent->maps ? maps_ref(parent->maps) : NULL;
    }
    p->based = false;
}

static void history_entry_fold_fork(History *h, Process *p, const PdTask *fork, uint64_t time,
                                    bool is_birth) {
    Task *task;

    if (fork->tid == fork->pid && is_birth) {
        history_entry_fold_birth(h, p, fork);
        return;
    }
    if (fork->tid == fork->pid) {
        /* The state from another recording follows this record. */
        p->maps = maps_put(&h->strings, p->maps);
        return;
    }
    task = task_find(h, p, fork->tid);
    if (task)
        task_free(h, task);
    task = task_get(h, p, fork->tid);
    if (!task)
        return;
    task_set_comm(h, task, history_entry_comm_of(h, p, fork->ptid), time);
    task->held = history_entry_holders_of(p);
    p->ended_ns = 0;
}

static void history_entry_stop_waiting(History *h, Process *p) {
    process_set_known(h, p);
    for (EmittedProcess *m = p->emitted; m; m = m->next)
        m->blank = false;
}

/* The thread that calls exec becomes the leader. Threads of a stated state were begun since, and
 * nothing needs what was before. */
static void history_entry_fold_exec(History *h, Process *p, uint64_t time) {
    if (time == p->stated_ns)
        p->maps = maps_put(&h->strings, p->maps);
    while (p->tasks && time != p->stated_ns)
        task_free(h, p->tasks);
    process_exec(h, p, time);
    p->leader_exited = false;
    p->ended_ns = 0;
    history_entry_stop_waiting(h, p);
}

static void history_entry_fold_comm(History *h, Process *p, const PdComm *comm, uint64_t time) {
    ProcessName *name = history_name(h, comm->comm);
    Task *task;

    if (comm->tid == p->pid) {
        if (comm->exec && time > p->exec_ns)
            history_entry_fold_exec(h, p, time);
        if (time >= p->comm_ns)
            process_set_comm(h, p, TAKE_PTR(name), time);
    } else {
        task = task_find(h, p, comm->tid);
        if (!task && (task = task_get(h, p, comm->tid)))
            task->held = history_entry_holders_of(p);
        if (task && time >= task->comm_ns)
            task_set_comm(h, task, TAKE_PTR(name), time);
    }
    names_put(&h->strings.names, &h->strings.budget, name);
}

static void history_entry_fold_exit(History *h, Process *p, const PdTask *exit, uint64_t time) {
    Task *task = exit->tid != p->pid ? task_find(h, p, exit->tid) : NULL;

    if (task)
        task_end(h, task, time);
    p->leader_exited |= exit->tid == p->pid;
    if (p->leader_exited && p->n_living == 0)
        (void)process_end(h, p, time);
}

void exit_fold(History *h, const PdTask *exit, uint64_t time) {
    Process *p = process_find_born(h, exit->pid, time);

    if (p)
        history_entry_fold_exit(h, p, exit, time);
}

void entry_fold(History *h, Entry *e) {
    Process *p = e->process;
    PdBody body;
    PdRecord record = entry_parse(e, &body);
    bool is_birth = p->birth == e;

    entry_detach(h, e);
    p->folded_ns = MAX(p->folded_ns, e->time);
    switch (record.type) {
    case PD_RECORD_FORK:
        history_entry_fold_fork(h, p, &body.task, e->time, is_birth);
        break;
    case PD_RECORD_COMM:
        history_entry_fold_comm(h, p, &body.comm, e->time);
        break;
    case PD_RECORD_MMAP2:
        /* An earlier mapping belonged to the old program. */
        if (e->time >= p->exec_ns)
            maps_apply(h, &p->maps, &body.mmap, e->image);
        break;
    case PD_RECORD_NAMESPACES:
        if (body.namespaces.tid == p->pid)
            process_set_namespaces(h, p, entry_record(e));
        break;
    case PD_RECORD_KSYMBOL:
    case PD_RECORD_BPF_EVENT:
        kernel_fold(h, entry_record(e));
        break;
    case PD_RECORD_EXIT:
        history_entry_fold_exit(h, p, &body.task, e->time);
        break;
    }
    entry_free(h, e);
}

static Process *history_entry_process_get(History *h, uint32_t pid, uint64_t time) {
    Process *p = process_find_born(h, pid, time);

    if (!p && (p = process_new(h, pid, 0)))
        process_set_unknown(h, p);
    return p;
}

/* Whether the FORK is known already: a ring may hold records that an earlier recording has too. */
static bool history_entry_is_born(const History *h, const Entry *e, const PdTask *fork) {
    const Process *p = process_find_born(h, fork->pid, e->time);

    return p && (p->birth_ns == e->time || p->stated_ns >= e->time);
}

static Process *history_entry_born(History *h, Entry *e, const PdTask *fork) {
    bool rooted = (int32_t)fork->ppid <= 0;
    Process *parent, *p;

    if (history_entry_is_born(h, e, fork))
        return NULL;
    parent = rooted ? NULL : history_entry_process_get(h, fork->ppid, e->time);
    p = process_new(h, fork->pid, e->time);
    if (!p)
        return NULL;
    p->ppid = fork->ppid;
    p->birth = e;
    if (!rooted && (!parent || !parent->known)) {
        process_set_unknown(h, p);
        p->waits_on = parent ? parent->serial : 0;
    }
    return p;
}

/* One of our recordings introduces a process: it existed before, and its whole state follows. */
static Process *history_entry_stated(History *h, const Entry *e, const PdTask *fork) {
    Process *p = process_find_born(h, fork->pid, e->time);
    /* True for a process known only as the parent of others. */
    bool blank = p && !p->known && p->birth_ns == 0 && !p->queue.first && !p->emitted;

    if (!p) {
        p = process_new(h, fork->pid, 0);
        blank = p != NULL;
    }
    if (blank) {
        p->stated_ns = e->time;
        p->ppid = fork->ppid;
    }
    if (p && !p->known)
        history_entry_stop_waiting(h, p);
    return p;
}

/*
 * Whether the record is part of a stated state, which holds before it was written too. What
 * happened before a recording began has the stamp of the moment of its states, and comes after
 * them.
 */
static bool history_entry_is_statement(const History *h, const Entry *e, const PdRecord *record,
                                       const PdBody *body) {
    const Process *p = e->process;
    bool same = p->stated_ns == e->time;
    const Task *task;

    switch (record->type) {
    case PD_RECORD_FORK:
        return (same && body->task.tid != p->pid) || record->misc & PD_MISC_FORK_EXEC;
    case PD_RECORD_COMM:
        task = body->comm.tid != p->pid ? task_find(h, p, body->comm.tid) : NULL;
        return same || (!body->comm.exec && task && task->comm_ns == e->time);
    case PD_RECORD_MMAP2:
        return same;
    default:
        return false;
    }
}

/*
 * From here on everything about the process is known. What its earlier children inherited will only
 * be known from a baseline of their own.
 */
static void history_entry_executed(History *h, Process *p) {
    if (p->known)
        return;
    p->known = true;
    if (p->waits_on)
        return;
    for (Process *child = h->first_unknown; child; child = child->unknown_after)
        if (child->waits_on == p->serial)
            child->waits_on = 0;
    history_entry_stop_waiting(h, p);
}

static Process *history_entry_owner_of(History *h, Entry *e, const PdRecord *record,
                                       const PdBody *body) {
    switch (record->type) {
    case PD_RECORD_FORK:
        if (body->task.tid != body->task.pid)
            return history_entry_process_get(h, body->task.pid, e->time);
        return record->misc & PD_MISC_FORK_EXEC ? history_entry_stated(h, e, &body->task)
                                                : history_entry_born(h, e, &body->task);
    case PD_RECORD_EXIT:
        return history_entry_process_get(h, body->task.pid, e->time);
    case PD_RECORD_COMM:
        return history_entry_process_get(h, body->comm.pid, e->time);
    case PD_RECORD_MMAP2:
        return history_entry_process_get(h, body->mmap.pid, e->time);
    case PD_RECORD_NAMESPACES:
        return history_entry_process_get(h, body->namespaces.pid, e->time);
    default:
        return &h->kernel;
    }
}

/* A recording has the records of a process without a gap, up to the last one that it was passed. */
static bool history_entry_is_emitted(const History *h, const Entry *e, uint32_t type) {
    return type != PD_RECORD_EXIT && e->process != &h->kernel && e->time <= h->resumed_ns &&
           e->time <= e->process->folded_ns;
}

/* No recording was passed a record that was folded at once. */
static void history_entry_let_go(History *h, const Process *p, uint32_t tid) {
    Task *task = tid != p->pid ? task_find(h, p, tid) : NULL;

    if (task)
        task->held = 0;
}

Entry *entry_settle(History *h, Entry *e, Entry *hint) {
    PdBody body;
    PdRecord record = entry_parse(e, &body);

    e->process = history_entry_owner_of(h, e, &record, &body);
    /* A record from before a stated state is included in that state. */
    if (!e->process || e->time < e->process->stated_ns ||
        history_entry_is_emitted(h, e, record.type)) {
        entry_free(h, e);
        return hint;
    }
    entry_link(h, e, hint);
    if (e->process->stated_ns != 0 && history_entry_is_statement(h, e, &record, &body)) {
        Process *p = e->process;

        entry_fold(h, e);
        if (record.type == PD_RECORD_FORK)
            history_entry_let_go(h, p, body.task.tid);
        return hint;
    }
    if (record.type == PD_RECORD_COMM && body.comm.exec && body.comm.tid == body.comm.pid)
        history_entry_executed(h, e->process);
    if (record.type == PD_RECORD_MMAP2 && e->image) {
        image_want(h, e->image, body.mmap.pid, body.mmap.start, body.mmap.start + body.mmap.length);
        check_mapped(h, e, &body.mmap);
    }
    if (record.type == PD_RECORD_EXIT)
        return e;
    if (!e->process->known)
        e->process->ended_ns = 0;
    for (EmittedProcess *m = e->process->emitted; m; m = m->next)
        emission_forward(m->emission, e);
    for (size_t i = 0; e->process == &h->kernel && i < EMISSIONS_MAX; i++)
        if (h->emissions[i] && h->emissions[i]->begun)
            emission_forward(h->emissions[i], e);
    return e;
}
