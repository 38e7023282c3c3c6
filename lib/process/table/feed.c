/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/table/table.h"

#include <sys/mman.h>

#include "process/dso.h"
#include "process/table/table-private.h"

/*
 * Applies each side-band record to the table. The rules are perf's, so that an answer is what perf
 * would print: a thread is known by its tid alone, a parent in the wrong process is replaced, and
 * FORK_EXEC makes the child inherit no mappings (recorders write it for processes that ran before
 * they began, followed by their mappings). A record for which there is no memory is dropped and
 * counted; no function fails for lack of memory.
 */

enum { KSYMBOL_UNREGISTER = 1 << 0 };

static ProcessName *feed_get_name(ProcessTable *table, Bytes text) {
    ProcessName *name = names_get(&table->strings.names, &table->strings.budget, text);

    table->dropped += !name;
    return name;
}

static void feed_comm(ProcessTable *table, const PdComm *comm) {
    Thread *thread = thread_get(table, comm->pid, comm->tid);

    if (!thread)
        return;
    thread_set_comm(table, thread, feed_get_name(table, comm->comm));
    if (comm->exec)
        thread_exec(table, thread);
}

static Thread *feed_parent_of(ProcessTable *table, const PdTask *task) {
    Thread *parent = thread_get(table, task->ppid, task->ptid);

    if (!parent || parent->pid == task->ppid)
        return parent;
    thread_remove(table, parent);
    return thread_get(table, task->ppid, task->ptid);
}

static void feed_inherit_maps(ProcessTable *table, Thread *child, const Thread *parent) {
    if (child->pid == parent->pid || child->space == parent->space)
        return;
    maps_put(&table->strings, child->space->maps);
    child->space->maps = maps_ref(parent->space->maps);
}

static void feed_fork(ProcessTable *table, const PdTask *task, uint16_t misc) {
    Thread *child = thread_find(table, task->tid), *parent;

    if (task->tid == task->ptid) {
        if (child && (misc & PD_MISC_FORK_EXEC))
            thread_exec(table, child);
        return;
    }
    if (child)
        thread_remove(table, child);
    if (!feed_parent_of(table, task))
        return;
    child = thread_get(table, task->pid, task->tid);
    /* Adding the child may have evicted the parent. */
    parent = thread_find(table, task->ptid);
    if (!child || !parent)
        return;
    if (parent->comm)
        thread_set_comm(table, child, name_ref(parent->comm));
    if (!(misc & PD_MISC_FORK_EXEC))
        feed_inherit_maps(table, child, parent);
}

static void feed_exit(ProcessTable *table, const PdTask *task) {
    Thread *thread = thread_find(table, task->tid);

    if (thread)
        thread_exited(table, thread);
}

static void feed_map(ProcessTable *table, ProcessMaps **maps, const PdMmap *mmap, Bytes dso,
                     bool kernel) {
    ProcessMapping mapping;

    if (!mapping_range(mmap, &mapping))
        return;
    mapping.image = images_get(&table->strings, mmap, dso, kernel);
    if (!mapping.image) {
        /* An unknown mapping is better than showing the old one. */
        (void)maps_remove(&table->strings, maps, mapping.start, mapping.end);
        table->dropped++;
        return;
    }
    table->dropped += maps_insert(&table->strings, maps, &mapping) < 0;
}

static Bytes feed_kernel_name(const ProcessTable *table) {
    static const char none[] = "[kernel.kallsyms]";

    if (table->kernel_name)
        return name_bytes(table->kernel_name);
    return (Bytes){.data = (const uint8_t *)none, .size = sizeof(none) - 1};
}

static void feed_kernel_map(ProcessTable *table, PdMmap *mmap) {
    char scratch[DSO_NAME_MAX];

    switch (dso_kernel_kind(mmap->filename)) {
    case DSO_KERNEL:
        /* perf writes an empty kernel mapping when it cannot read addresses. */
        if (mmap->start == 0 && mmap->length == 0)
            mmap->length = UINT64_MAX;
        feed_map(table, &table->kernel, mmap, feed_kernel_name(table), true);
        break;
    case DSO_MODULE:
        feed_map(table, &table->kernel, mmap, dso_module_name(mmap->filename, scratch), false);
        break;
    case DSO_KERNEL_EXTRA:
        feed_map(table, &table->kernel, mmap, feed_kernel_name(table), true);
        break;
    }
}

static void feed_mmap(ProcessTable *table, const PdRecord *record, PdMmap *mmap) {
    unsigned cpumode = record->misc & PD_MISC_CPUMODE_MASK;
    bool executable = record->type == PD_RECORD_MMAP ? !mmap->data : mmap->prot & PROT_EXEC;
    char scratch[DSO_NAME_MAX];
    Thread *thread;

    if (cpumode == PD_MISC_KERNEL) {
        feed_kernel_map(table, mmap);
        return;
    }
    if (cpumode == PD_MISC_GUEST_KERNEL || cpumode == PD_MISC_GUEST_USER)
        return;
    thread = thread_get(table, mmap->pid, mmap->tid);
    if (thread)
        feed_map(table, &thread->space->maps, mmap, dso_user_name(mmap, executable, scratch),
                 false);
}

/* Generated kernel code (BPF programs, trampolines) that has no mapping record. */
static void feed_ksymbol(ProcessTable *table, const PdKsymbol *ksymbol) {
    const ProcessMapping *there = maps_find(table->kernel, ksymbol->addr);
    PdMmap mmap = {.start = ksymbol->addr, .length = ksymbol->length, .filename = ksymbol->name};

    if (!(ksymbol->flags & KSYMBOL_UNREGISTER)) {
        if (!there)
            feed_map(table, &table->kernel, &mmap, ksymbol->name, false);
    } else if (there && !there->image->kernel)
        (void)maps_remove(&table->strings, &table->kernel, there->start, there->end);
}

static uint64_t feed_cgroup_key(const void *cgroup) {
    return ((const Cgroup *)cgroup)->id;
}

static void feed_cgroup(ProcessTable *table, const PdCgroup *cgroup) {
    ProcessStrings *s = &table->strings;
    Cgroup *known = cgroup_find(table, cgroup->id);
    ProcessName *path = feed_get_name(table, cgroup->path);

    if (!path)
        return;
    if (known) {
        names_put(&s->names, &s->budget, known->path);
        known->path = path;
        return;
    }
    if (hash_table_make_room(&table->cgroups, &s->budget, feed_cgroup_key))
        known = budget_alloc(&s->budget, sizeof(*known));
    if (!known) {
        names_put(&s->names, &s->budget, path);
        table->dropped++;
        return;
    }
    *known = (Cgroup){.id = cgroup->id, .path = path};
    hash_table_add(&table->cgroups, known, known->id);
}

void process_table_feed_build_id(ProcessTable *table, uint16_t misc, Bytes filename) {
    const uint8_t *nul = filename.size > 0 ? memchr(filename.data, 0, filename.size) : NULL;

    if (nul)
        filename.size = (size_t)(nul - filename.data);
    if ((misc & PD_MISC_CPUMODE_MASK) != PD_MISC_KERNEL || table->kernel_name ||
        filename.size == 0 || dso_is_module(filename))
        return;
    table->kernel_name = feed_get_name(table, filename);
}

bool process_table_takes(const PdRecord *record) {
    switch (record->type) {
    case PD_RECORD_COMM:
    case PD_RECORD_FORK:
    case PD_RECORD_EXIT:
    case PD_RECORD_MMAP:
    case PD_RECORD_MMAP2:
    case PD_RECORD_KSYMBOL:
    case PD_RECORD_CGROUP:
    case PD_RECORD_BUILD_ID:
        return true;
    default:
        return false;
    }
}

int process_table_feed(ProcessTable *table, const PdRecord *record, const PdEvent *event) {
    PdBody body;
    int r;

    if (!process_table_takes(record))
        return 0;
    r = pd_record_parse(record, event, &body);
    if (r < 0)
        return r;
    switch (record->type) {
    case PD_RECORD_COMM:
        feed_comm(table, &body.comm);
        break;
    case PD_RECORD_FORK:
        feed_fork(table, &body.task, record->misc);
        break;
    case PD_RECORD_EXIT:
        feed_exit(table, &body.task);
        break;
    case PD_RECORD_MMAP:
    case PD_RECORD_MMAP2:
        feed_mmap(table, record, &body.mmap);
        break;
    case PD_RECORD_KSYMBOL:
        feed_ksymbol(table, &body.ksymbol);
        break;
    case PD_RECORD_CGROUP:
        feed_cgroup(table, &body.cgroup);
        break;
    case PD_RECORD_BUILD_ID:
        process_table_feed_build_id(table, body.build_id.misc, body.build_id.filename);
        break;
    }
    return 0;
}
