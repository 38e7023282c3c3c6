/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history-private.h"
#include "util/hash.h"

/*
 * Processes by pid (several lives of a pid if it was reused within the window) and threads by tid
 * and process. The leader has no object of its own: its name is in the process. Processes without a
 * baseline are in a list, in order of arrival.
 */

static Process **history_process_bucket_of(const History *h, uint32_t pid) {
    return &h->buckets[hash_u64(h->seed, pid) & (h->n_buckets - 1)];
}

static Task **history_process_task_bucket_of(const History *h, uint32_t tid) {
    return &h->task_buckets[hash_u64(h->seed, tid) & (h->n_task_buckets - 1)];
}

/* Without memory for more buckets the chains grow. */
static void history_process_buckets_grow(History *h) {
    size_t n_old = h->n_buckets, n = n_old ? n_old * 2 : 256;
    Process **old = h->buckets, **buckets = budget_alloc(&h->strings.budget, n * sizeof(*buckets));

    if (!buckets)
        return;
    h->buckets = buckets;
    h->n_buckets = n;
    for (size_t i = 0; i < n_old; i++)
        for (Process *p = old[i], *after; p; p = after) {
            Process **bucket = history_process_bucket_of(h, p->pid);

            after = p->next;
            p->next = *bucket;
            *bucket = p;
        }
    budget_free(&h->strings.budget, old, n_old * sizeof(*old));
}

static void history_process_task_buckets_grow(History *h) {
    size_t n_old = h->n_task_buckets, n = n_old ? n_old * 2 : 256;
    Task **old = h->task_buckets,
         **buckets = budget_alloc(&h->strings.budget, n * sizeof(*buckets));

    if (!buckets)
        return;
    h->task_buckets = buckets;
    h->n_task_buckets = n;
    for (size_t i = 0; i < n_old; i++)
        for (Task *t = old[i], *after; t; t = after) {
            Task **bucket = history_process_task_bucket_of(h, t->tid);

            after = t->next;
            t->next = *bucket;
            *bucket = t;
        }
    budget_free(&h->strings.budget, old, n_old * sizeof(*old));
}

Process *process_find_born(const History *h, uint32_t pid, uint64_t time) {
    Process *found = NULL;

    if (h->n_buckets == 0)
        return NULL;
    for (Process *p = *history_process_bucket_of(h, pid); p; p = p->next)
        if (p->pid == pid && p->birth_ns <= time && (!found || p->birth_ns >= found->birth_ns))
            found = p;
    return found;
}

Process *process_find(const History *h, uint32_t pid, uint64_t time) {
    Process *found = process_find_born(h, pid, time);

    if (found || h->n_buckets == 0)
        return found;
    for (Process *p = *history_process_bucket_of(h, pid); p; p = p->next)
        if (p->pid == pid && (!found || p->birth_ns < found->birth_ns))
            found = p;
    return found;
}

Process *process_find_serial(const History *h, uint32_t pid, uint64_t serial) {
    Process *p = h->n_buckets > 0 ? *history_process_bucket_of(h, pid) : NULL;

    while (p && p->serial != serial)
        p = p->next;
    return p;
}

Process *process_new(History *h, uint32_t pid, uint64_t birth_ns) {
    Process *p, **bucket;

    if (h->n_processes >= h->n_buckets)
        history_process_buckets_grow(h);
    p = h->n_buckets > 0 ? budget_alloc(&h->strings.budget, sizeof(*p)) : NULL;
    if (!p) {
        h->dropped++;
        return NULL;
    }
    bucket = history_process_bucket_of(h, pid);
    p->pid = pid;
    p->birth_ns = birth_ns;
    p->serial = ++h->serial;
    p->known = true;
    p->next = *bucket;
    *bucket = p;
    h->n_processes++;
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
    Process **at;

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
    for (at = history_process_bucket_of(h, p->pid); *at != p; at = &(*at)->next)
        ;
    *at = p->next;
    h->n_processes--;
    h->generation++;
    budget_free(&h->strings.budget, p, sizeof(*p));
}

static bool history_process_is_older(const Process *p, const Process *than) {
    return p->birth_ns < than->birth_ns ||
           (p->birth_ns == than->birth_ns && p->serial < than->serial);
}

void process_free_older(History *h, const Process *than) {
    for (Process *p = *history_process_bucket_of(h, than->pid), *after; p; p = after) {
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
    if (h->n_task_buckets == 0)
        return NULL;
    for (Task *t = *history_process_task_bucket_of(h, tid); t; t = t->next)
        if (t->tid == tid && t->process == p)
            return t;
    return NULL;
}

Task *task_get(History *h, Process *p, uint32_t tid) {
    Task *t = task_find(h, p, tid), **bucket;

    if (t)
        return t;
    if (h->n_tasks >= h->n_task_buckets)
        history_process_task_buckets_grow(h);
    t = h->n_task_buckets > 0 ? budget_alloc(&h->strings.budget, sizeof(*t)) : NULL;
    if (!t) {
        h->dropped++;
        return NULL;
    }
    bucket = history_process_task_bucket_of(h, tid);
    t->tid = tid;
    t->process = p;
    t->next = *bucket;
    *bucket = t;
    t->after = p->tasks;
    if (p->tasks)
        p->tasks->before = t;
    p->tasks = t;
    p->n_living++;
    h->n_tasks++;
    return t;
}

void task_free(History *h, Task *task) {
    Task **at;

    for (at = history_process_task_bucket_of(h, task->tid); *at != task; at = &(*at)->next)
        ;
    *at = task->next;
    *(task->before ? &task->before->after : &task->process->tasks) = task->after;
    if (task->after)
        task->after->before = task->before;
    names_put(&h->strings.names, &h->strings.budget, task->comm);
    task->process->n_living -= task->ended_ns == 0;
    h->n_tasks--;
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
