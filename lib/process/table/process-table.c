/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/table/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "process/table/table-private.h"

/*
 * Threads by tid, their comms, their shared address spaces, and the answers for samples. A thread
 * costs some sixty bytes besides what it shares: its comm is an interned name, its space belongs to
 * its process, and the mappings of a space are shared with the parent until they differ. The last
 * thread is cached, since samples of a thread come in runs.
 */

enum {
    EXITED_DEFAULT = 16384,
};

static const uint64_t memory_default = 64 << 20;

static uint64_t process_table_key(const void *thread) {
    return ((const Thread *)thread)->tid;
}

Thread *thread_find(ProcessTable *table, uint32_t tid) {
    Thread *t;

    if (table->recent && table->recent->tid == tid)
        return table->recent;
    for (t = hash_table_chain(&table->threads, tid); t; t = t->next)
        if (t->tid == tid)
            return table->recent = t;
    return NULL;
}

static Space *process_table_space_new(ProcessTable *table) {
    ProcessStrings *s = &table->strings;
    Space *space = budget_alloc(&s->budget, sizeof(*space));

    if (!space)
        return NULL;
    space->refs = 1;
    space->maps = maps_new(s);
    return space->maps ? space : budget_free(&s->budget, space, sizeof(*space));
}

static void process_table_space_put(ProcessTable *table, Space *space) {
    if (!space || --space->refs > 0)
        return;
    maps_put(&table->strings, space->maps);
    budget_free(&table->strings.budget, space, sizeof(*space));
}

static void process_table_exited_unlink(ProcessTable *table, Thread *t) {
    if (!t->exited)
        return;
    *(t->older ? &t->older->newer : &table->oldest_exited) = t->newer;
    *(t->newer ? &t->newer->older : &table->newest_exited) = t->older;
    t->older = t->newer = NULL;
    t->exited = false;
    table->n_exited--;
}

static void process_table_exited_link(ProcessTable *table, Thread *t) {
    t->older = table->newest_exited;
    *(t->older ? &t->older->newer : &table->oldest_exited) = t;
    table->newest_exited = t;
    t->exited = true;
    table->n_exited++;
}

void thread_remove(ProcessTable *table, Thread *thread) {
    ProcessStrings *s = &table->strings;

    hash_table_remove(&table->threads, thread, thread->tid);
    process_table_exited_unlink(table, thread);
    if (table->recent == thread)
        table->recent = NULL;
    names_put(&s->names, &s->budget, thread->comm);
    process_table_space_put(table, thread->space);
    budget_free(&s->budget, thread, sizeof(*thread));
}

/* Forgets the thread that ended first. A leader with living threads waits once more, since new
 * threads get their mappings through it. */
static void process_table_forget_oldest(ProcessTable *table) {
    Thread *t = table->oldest_exited;

    if (t->pid == t->tid && t->space->refs > 1 && t != table->newest_exited) {
        process_table_exited_unlink(table, t);
        process_table_exited_link(table, t);
        t = table->oldest_exited;
    }
    thread_remove(table, t);
}

void thread_exited(ProcessTable *table, Thread *thread) {
    if (table->forget_exited) {
        thread_remove(table, thread);
        return;
    }
    process_table_exited_unlink(table, thread);
    process_table_exited_link(table, thread);
    if (table->n_exited > table->exited_max)
        process_table_forget_oldest(table);
}

/* Takes ownership of the space. */
static Thread *process_table_thread_add(ProcessTable *table, uint32_t pid, uint32_t tid,
                                        Space *space) {
    ProcessBudget *budget = &table->strings.budget;
    bool has_room = space && hash_table_make_room(&table->threads, budget, process_table_key);
    Thread *t = has_room ? budget_alloc(budget, sizeof(*t)) : NULL;

    if (!t) {
        process_table_space_put(table, space);
        return NULL;
    }
    t->pid = pid;
    t->tid = tid;
    t->space = space;
    hash_table_add(&table->threads, t, tid);
    return table->recent = t;
}

/* The leader of a new or exec'ed process has its own space; further threads share the leader's. */
static Thread *process_table_thread_new(ProcessTable *table, uint32_t pid, uint32_t tid) {
    Thread *leader;

    if (pid == tid || pid == UINT32_MAX)
        return process_table_thread_add(table, pid, tid, process_table_space_new(table));
    leader = thread_find(table, pid);
    if (!leader)
        leader = process_table_thread_add(table, pid, pid, process_table_space_new(table));
    if (!leader)
        return NULL;
    leader->space->refs++;
    return process_table_thread_add(table, pid, tid, leader->space);
}

/* A thread that was known before its process joins the process. */
static void process_table_thread_join(ProcessTable *table, Thread *thread, uint32_t pid) {
    Thread *leader;

    if (thread->pid != UINT32_MAX || pid == UINT32_MAX)
        return;
    thread->pid = pid;
    if (pid == thread->tid)
        return;
    leader = thread_find(table, pid);
    if (!leader)
        leader = process_table_thread_new(table, pid, pid);
    if (!leader)
        return;
    leader->space->refs++;
    process_table_space_put(table, thread->space);
    thread->space = leader->space;
}

Thread *thread_get(ProcessTable *table, uint32_t pid, uint32_t tid) {
    Thread *t = thread_find(table, tid);

    if (t) {
        process_table_exited_unlink(table, t);
        process_table_thread_join(table, t, pid);
        return t;
    }
    t = process_table_thread_new(table, pid, tid);
    if (!t) {
        for (size_t n = table->n_exited / 2 + 1; n > 0 && table->n_exited > 0; n--)
            process_table_forget_oldest(table);
        t = process_table_thread_new(table, pid, tid);
    }
    table->dropped += !t;
    return t;
}

void thread_exec(ProcessTable *table, Thread *thread) {
    Space *space = process_table_space_new(table);

    if (!space) {
        table->dropped++;
        return;
    }
    process_table_space_put(table, thread->space);
    thread->space = space;
}

void thread_set_comm(ProcessTable *table, Thread *thread, ProcessName *comm) {
    names_put(&table->strings.names, &table->strings.budget, thread->comm);
    thread->comm = comm;
}

Cgroup *cgroup_find(const ProcessTable *table, uint64_t id) {
    Cgroup *cgroup = hash_table_chain(&table->cgroups, id);

    while (cgroup && cgroup->id != id)
        cgroup = cgroup->next;
    return cgroup;
}

static ProcessName *process_table_get_constant(ProcessTable *table, const char *text) {
    return names_get(&table->strings.names, &table->strings.budget,
                     (Bytes){.data = (const uint8_t *)text, .size = strlen(text)});
}

int process_table_new(const ProcessLimits *limits, ProcessTable **ret) {
    _cleanup_(process_table_freep) ProcessTable *table = calloc(1, sizeof(*table));
    ProcessName *swapper;
    Thread *idle;

    if (!table)
        return -ENOMEM;
    table->strings.budget.limit_bytes =
        limits && limits->memory_bytes ? limits->memory_bytes : memory_default;
    table->exited_max = limits && limits->exited ? limits->exited : EXITED_DEFAULT;
    table->forget_exited = limits && limits->forget_exited;
    table->kernel = maps_new(&table->strings);
    table->unknown = process_table_get_constant(table, "[unknown]");
    swapper = process_table_get_constant(table, "swapper");
    idle = process_table_thread_new(table, 0, 0);
    if (!table->kernel || !table->unknown || !swapper || !idle)
        return -ENOMEM;
    thread_set_comm(table, idle, swapper);
    *ret = TAKE_PTR(table);
    return 0;
}

ProcessTable *process_table_free(ProcessTable *table) {
    ProcessStrings *s;
    Thread *thread;
    Cgroup *cgroup;

    if (!table)
        return NULL;
    s = &table->strings;
    for (size_t at = 0; (thread = hash_table_from(&table->threads, &at));)
        thread_remove(table, thread);
    hash_table_done(&table->threads, &s->budget);
    for (size_t at = 0; (cgroup = hash_table_from(&table->cgroups, &at));) {
        hash_table_remove(&table->cgroups, cgroup, cgroup->id);
        budget_free(&s->budget, cgroup, sizeof(*cgroup));
    }
    hash_table_done(&table->cgroups, &s->budget);
    maps_put(s, table->kernel);
    images_done(s);
    names_done(&s->names, &s->budget);
    free(table);
    return NULL;
}

static ProcessAnswer process_table_answer_scratch(ProcessTable *table, const char *text) {
    names_put(&table->strings.names, &table->strings.budget, table->scratch);
    table->scratch = process_table_get_constant(table, text);
    table->dropped += !table->scratch;
    return (ProcessAnswer){.name = table->scratch ?: table->unknown};
}

ProcessAnswer process_table_comm(ProcessTable *table, uint32_t pid, uint32_t tid) {
    const Thread *t = thread_find(table, tid);
    char text[16];

    if (t && t->comm)
        return (ProcessAnswer){.name = t->comm, .known = true};
    snprintf(text, sizeof(text), ":%" PRIi32, (int32_t)tid);
    return process_table_answer_scratch(table, text);
}

const ProcessMaps *process_table_maps(ProcessTable *table, uint32_t pid, uint32_t tid,
                                      unsigned cpumode) {
    const Thread *t;

    if (cpumode == PD_MISC_KERNEL)
        return table->kernel;
    if (cpumode != PD_MISC_USER)
        return NULL;
    t = thread_find(table, tid);
    if (!t && pid != UINT32_MAX)
        t = thread_find(table, pid);
    return t ? t->space->maps : NULL;
}

ProcessAnswer process_table_dso(ProcessTable *table, uint32_t pid, uint32_t tid, unsigned cpumode,
                                uint64_t ip, const ProcessMapping **ret_mapping) {
    const ProcessMaps *maps = process_table_maps(table, pid, tid, cpumode);
    const ProcessMapping *mapping = maps ? maps_find(maps, ip) : NULL;

    if (ret_mapping)
        *ret_mapping = mapping;
    return mapping ? (ProcessAnswer){.name = mapping->image->dso, .known = true}
                   : (ProcessAnswer){.name = table->unknown};
}

ProcessAnswer process_table_cgroup(ProcessTable *table, uint64_t id) {
    const Cgroup *cgroup = cgroup_find(table, id);

    return cgroup ? (ProcessAnswer){.name = cgroup->path, .known = true}
                  : (ProcessAnswer){.name = table->unknown};
}

void process_table_keep(const ProcessName *name) {
    name_ref((ProcessName *)name);
}

void process_table_forget(ProcessTable *table, const ProcessName *name) {
    names_put(&table->strings.names, &table->strings.budget, (ProcessName *)name);
}

const ProcessMaps *process_table_kernel_maps(const ProcessTable *table) {
    return table->kernel;
}

ProcessCounts process_table_counts(const ProcessTable *table) {
    return (ProcessCounts){
        .threads = table->threads.n,
        .exited = table->n_exited,
        .names = table->strings.names.n,
        .images = table->strings.images.n,
        .memory_bytes = table->strings.budget.used_bytes,
        .dropped = table->dropped,
    };
}
