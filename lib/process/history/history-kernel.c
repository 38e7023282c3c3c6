/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "process/history/history-private.h"

/*
 * What belongs to no process: the text of the kernel, its modules and generated code, each as a
 * record, and the paths of cgroups by id. A recording begins with all of the kernel's records; of
 * the cgroups it gets those that its samples name.
 */

enum { KERNEL_RECORDS_MAX = 65536, CGROUPS_MAX = 16384, PROG_LOAD = 1, PROG_UNLOAD = 2 };
enum { KSYMBOL_UNREGISTER = 1 << 0 };

/* The key of the record: an address or the id of a program. False: another type of record. */
static bool history_kernel_key_of(Bytes bytes, PdRecord *ret_record, PdBody *ret_body,
                                  uint64_t *ret) {
    PdRecord record = pd_record_at(bytes.data, false);

    if (pd_record_parse(&record, NULL, ret_body) < 0)
        return false;
    *ret_record = record;
    switch (record.type) {
    case PD_RECORD_MMAP:
    case PD_RECORD_MMAP2:
        *ret = ret_body->mmap.start;
        return true;
    case PD_RECORD_KSYMBOL:
        *ret = ret_body->ksymbol.addr;
        return true;
    case PD_RECORD_BPF_EVENT:
        *ret = ret_body->bpf_event.id;
        return true;
    default:
        return false;
    }
}

static uint64_t history_kernel_record_key(const void *record) {
    return ((const KernelRecord *)record)->key;
}

static void history_kernel_drop(History *h, KernelRecord *k) {
    hash_table_remove(&h->kernel_records, k, k->key);
    *(k->older ? &k->older->newer : &h->oldest_kernel) = k->newer;
    *(k->newer ? &k->newer->older : &h->newest_kernel) = k->older;
    budget_free(&h->strings.budget, k, sizeof(*k) + k->size);
}

static KernelRecord *history_kernel_find(History *h, uint64_t key, Bytes record) {
    for (KernelRecord *k = hash_table_chain(&h->kernel_records, key); k; k = k->next)
        if (k->key == key && bytes_equal((Bytes){.data = k->record, .size = k->size}, record))
            return k;
    return NULL;
}

static KernelRecord *history_kernel_add(History *h, uint64_t key, Bytes record) {
    KernelRecord *k = NULL;

    if (h->kernel_records.n < KERNEL_RECORDS_MAX &&
        hash_table_make_room(&h->kernel_records, &h->strings.budget, history_kernel_record_key))
        k = budget_alloc(&h->strings.budget, sizeof(*k) + record.size);
    if (!k) {
        h->dropped++;
        return NULL;
    }
    memcpy(k->record, record.data, record.size);
    k->size = (uint32_t)record.size;
    k->key = key;
    hash_table_add(&h->kernel_records, k, key);
    k->older = h->newest_kernel;
    *(k->older ? &k->older->newer : &h->oldest_kernel) = k;
    h->newest_kernel = k;
    return k;
}

static void history_kernel_drop_all(History *h, uint64_t key, uint32_t type) {
    for (KernelRecord *k = hash_table_chain(&h->kernel_records, key), *after; k; k = after) {
        after = k->next;
        if (k->key == key && load_u32(k->record, false) == type)
            history_kernel_drop(h, k);
    }
}

void kernel_fold(History *h, Bytes bytes) {
    PdRecord record;
    PdBody body;
    uint64_t key;
    bool gone;

    if (!history_kernel_key_of(bytes, &record, &body, &key))
        return;
    if (record.type == PD_RECORD_KSYMBOL)
        gone = body.ksymbol.flags & KSYMBOL_UNREGISTER;
    else if (body.bpf_event.bpf_type == PROG_LOAD || body.bpf_event.bpf_type == PROG_UNLOAD)
        gone = body.bpf_event.bpf_type == PROG_UNLOAD;
    else
        return;
    if (gone)
        history_kernel_drop_all(h, key, record.type);
    else if (!history_kernel_find(h, key, bytes))
        history_kernel_add(h, key, bytes);
}

static void history_kernel_install(History *h, uint64_t key, Bytes record) {
    KernelRecord *k = history_kernel_find(h, key, record);

    if (!k && (k = history_kernel_add(h, key, record)))
        for (size_t i = 0; i < EMISSIONS_MAX; i++)
            if (h->emissions[i] && h->emissions[i]->begun)
                emission_kernel_record(h->emissions[i], record, history_stamp(h));
    if (k)
        k->stays = true;
}

static bool history_kernel_is_map(uint32_t type) {
    return type == PD_RECORD_MMAP || type == PD_RECORD_MMAP2;
}

/* Generated code is listed by the first call and reported by side-band from then on; changes of
 * modules are not reported. */
int history_install_kernel(History *h, Bytes records) {
    bool first = !h->knows_kernel;
    PdRecord record;
    PdBody body;
    uint64_t key;

    h->knows_kernel = true;
    for (KernelRecord *k = h->oldest_kernel; k; k = k->newer)
        k->stays = !history_kernel_is_map(load_u32(k->record, false));
    while (pd_records_next(&records, &record)) {
        Bytes bytes = {.data = record.data, .size = record.size};

        if ((first || history_kernel_is_map(record.type)) &&
            history_kernel_key_of(bytes, &record, &body, &key))
            history_kernel_install(h, key, bytes);
    }
    for (KernelRecord *k = h->oldest_kernel, *after; k; k = after) {
        after = k->newer;
        if (!k->stays)
            history_kernel_drop(h, k);
    }
    return records.size == 0 ? 0 : -EBADMSG;
}

void kernel_done(History *h) {
    while (h->oldest_kernel)
        history_kernel_drop(h, h->oldest_kernel);
    hash_table_done(&h->kernel_records, &h->strings.budget);
}

static uint64_t history_kernel_cgroup_key(const void *cgroup) {
    return ((const Cgroup *)cgroup)->id;
}

Cgroup *cgroup_of(History *h, uint64_t id) {
    for (Cgroup *c = hash_table_chain(&h->cgroups, id); c; c = c->next)
        if (c->id == id)
            return c;
    return NULL;
}

static void history_kernel_drop_oldest_cgroup(History *h) {
    Cgroup *c = h->oldest_cgroup;

    hash_table_remove(&h->cgroups, c, c->id);
    h->oldest_cgroup = c->newer;
    if (!c->newer)
        h->newest_cgroup = NULL;
    names_put(&h->strings.names, &h->strings.budget, c->path);
    budget_free(&h->strings.budget, c, sizeof(*c));
}

/* The end of a cgroup is not reported, so the oldest ones are dropped to make room. */
void cgroup_learn(History *h, uint64_t id, Bytes text) {
    ProcessName *path = history_name(h, text);
    Cgroup *c = cgroup_of(h, id);

    if (!path)
        return;
    if (c) {
        c->held = c->path == path ? c->held : 0;
        names_put(&h->strings.names, &h->strings.budget, c->path);
        c->path = path;
        return;
    }
    if (h->cgroups.n >= CGROUPS_MAX)
        history_kernel_drop_oldest_cgroup(h);
    if (hash_table_make_room(&h->cgroups, &h->strings.budget, history_kernel_cgroup_key))
        c = budget_alloc(&h->strings.budget, sizeof(*c));
    if (!c) {
        h->dropped++;
        names_put(&h->strings.names, &h->strings.budget, path);
        return;
    }
    *c = (Cgroup){.id = id, .path = path};
    hash_table_add(&h->cgroups, c, id);
    *(h->newest_cgroup ? &h->newest_cgroup->newer : &h->oldest_cgroup) = c;
    h->newest_cgroup = c;
}

int history_install_cgroup(History *h, uint64_t id, Bytes path) {
    cgroup_learn(h, id, path);
    return 0;
}

void cgroups_let_go(History *h, EmissionSet slot) {
    for (Cgroup *c = h->oldest_cgroup; c; c = c->newer)
        c->held &= ~slot;
}

void cgroups_done(History *h) {
    while (h->oldest_cgroup)
        history_kernel_drop_oldest_cgroup(h);
    hash_table_done(&h->cgroups, &h->strings.budget);
}
