/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history-private.h"
#include "util/hash.h"

/*
 * Processes by pid (several lives of a pid if it was reused within the window) and threads by tid
 * and process. The leader has no object of its own: its name is in the process. Processes without a
 * baseline are in a list, in order of arrival.
 */

static uint64_t history_process_key(const void *process) {
    return ((const Process *)process)->pid;
}

static uint64_t history_process_task_key(const void *task) {
    return ((const Task *)task)->tid;
}

Process *process_find_born(const History *h, uint32_t pid, uint64_t time) {
    Process *found = NULL;

    for (Process *p = hash_table_chain(&h->processes, pid); p; p = p->next)
        if (p->pid == pid && p->birth_ns <= time && (!found || p->birth_ns >= found->birth_ns))
            found = p;
    return found;
}

Process *process_find(const History *h, uint32_t pid, uint64_t time) {
    Process *found = process_find_born(h, pid, time);

    if (found)
        return found;
    for (Process *p = hash_table_chain(&h->processes, pid); p; p = p->next)
        if (p->pid == pid && (!found || p->birth_ns < found->birth_ns))
            found = p;
    return found;
}

Process *process_find_serial(const History *h, uint32_t pid, uint64_t serial) {
    Process *p = hash_table_chain(&h->processes, pid);

    while (p && p->serial != serial)
        p = p->next;
    return p;
}

Process *process_new(History *h, uint32_t pid, uint64_t birth_ns) {
    ProcessBudget *budget = &h->strings.budget;
    bool has_room = hash_table_make_room(&h->processes, budget, history_process_key);
    Process *p = has_room ? budget_alloc(budget, sizeof(*p)) : NULL;

    if (!p) {
        h->dropped++;
        return NULL;
    }
    p->pid = pid;
    p->birth_ns = birth_ns;
    p->serial = ++h->serial;
    p->known = true;
    hash_table_add(&h->processes, p, pid);
    h->generation++;
    return p;
}

void process_set_unknown(History *h, Process *p) {
    p->known = false;
    if (p->listed)
        return;
    p->listed = true;
    p->unknown_before = h->last_unknown;
    *(h->last_unknown ? &h->last_unknown->unknown_after : &h->first_unknown) = p;
    h->last_unknown = p;
    if (!h->unknown_next)
        h->unknown_next = p;
    h->n_unknown++;
}

void process_set_known(History *h, Process *p) {
    p->known = true;
    p->waits_on = 0;
    if (!p->listed)
        return;
    p->listed = false;
    if (h->unknown_next == p)
        h->unknown_next = p->unknown_after;
    *(p->unknown_before ? &p->unknown_before->unknown_after : &h->first_unknown) = p->unknown_after;
    *(p->unknown_after ? &p->unknown_after->unknown_before : &h->last_unknown) = p->unknown_before;
    p->unknown_before = p->unknown_after = NULL;
    h->n_unknown--;
}

void process_free(History *h, Process *p) {
    space_release(h, p);
    process_set_known(h, p);
    while (p->tasks)
        task_free(h, p->tasks);
    while (p->queue.first)
        entry_unlink(h, p->queue.first);
    while (p->emitted)
        emitted_process_free(p->emitted);
    names_put(&h->strings.names, &h->strings.budget, p->comm);
    maps_put(&h->strings, p->maps);
    maps_put(&h->strings, p->before_exec);
    budget_free(&h->strings.budget, p->namespaces, p->namespaces_size);
    hash_table_remove(&h->processes, p, p->pid);
    h->generation++;
    budget_free(&h->strings.budget, p, sizeof(*p));
}

static bool history_process_is_older(const Process *p, const Process *than) {
    return p->birth_ns < than->birth_ns ||
           (p->birth_ns == than->birth_ns && p->serial < than->serial);
}

void process_free_older(History *h, const Process *than) {
    for (Process *p = hash_table_chain(&h->processes, than->pid), *after; p; p = after) {
        after = p->next;
        if (p->pid == than->pid && history_process_is_older(p, than))
            process_free(h, p);
    }
}

void process_set_comm(History *h, Process *p, ProcessName *comm, uint64_t time) {
    names_put(&h->strings.names, &h->strings.budget, p->comm);
    p->comm = comm;
    p->comm_ns = time;
}

void process_set_namespaces(History *h, Process *p, Bytes record) {
    ProcessBudget *budget = &h->strings.budget;

    if (p->namespaces_size != record.size) {
        p->namespaces = budget_free(budget, p->namespaces, p->namespaces_size);
        p->namespaces_size = 0;
        p->namespaces = budget_alloc(budget, record.size);
        if (!p->namespaces) {
            h->dropped++;
            return;
        }
        p->namespaces_size = (uint32_t)record.size;
    }
    memcpy(p->namespaces, record.data, record.size);
}

Task *task_find(const History *h, const Process *p, uint32_t tid) {
    for (Task *t = hash_table_chain(&h->tasks, tid); t; t = t->next)
        if (t->tid == tid && t->process == p)
            return t;
    return NULL;
}

Task *task_get(History *h, Process *p, uint32_t tid) {
    ProcessBudget *budget = &h->strings.budget;
    Task *t = task_find(h, p, tid);

    if (t)
        return t;
    if (hash_table_make_room(&h->tasks, budget, history_process_task_key))
        t = budget_alloc(budget, sizeof(*t));
    if (!t) {
        h->dropped++;
        return NULL;
    }
    t->tid = tid;
    t->process = p;
    hash_table_add(&h->tasks, t, tid);
    t->after = p->tasks;
    if (p->tasks)
        p->tasks->before = t;
    p->tasks = t;
    p->n_living++;
    return t;
}

void task_free(History *h, Task *task) {
    hash_table_remove(&h->tasks, task, task->tid);
    *(task->before ? &task->before->after : &task->process->tasks) = task->after;
    if (task->after)
        task->after->before = task->before;
    names_put(&h->strings.names, &h->strings.budget, task->comm);
    task->process->n_living -= task->ended_ns == 0;
    budget_free(&h->strings.budget, task, sizeof(*task));
}

void task_set_comm(History *h, Task *task, ProcessName *comm, uint64_t time) {
    names_put(&h->strings.names, &h->strings.budget, task->comm);
    task->comm = comm;
    task->comm_ns = time;
}

ProcessName *history_name(History *h, Bytes text) {
    ProcessName *name = names_get(&h->strings.names, &h->strings.budget, text);

    h->dropped += !name;
    return name;
}
