/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/describe/describe-row.h"

/*
 * Bodies of the kernel's records for people and for JSON: known numbers by name, together with what
 * perf would print.
 */

enum { MAP_SHARED_FLAG = 1, NAMESPACE_LINK_SIZE = 16, BPF_TAG_SIZE = 8 };

void record_describe_nothing(const PdBody *body, const RecordView *in, Fields *f) {
}

static void record_kernel_describe_range(const PdMmap *m, Fields *f) {
    describe_id(f, "pid", m->pid);
    describe_id(f, "tid", m->tid);
    fields_hex(f, "start", m->start);
    fields_hex(f, "length", m->length);
    fields_hex(f, "pgoff", m->pgoff);
}

static void record_kernel_describe_map_misc(const PdMmap *m, const RecordView *in, Fields *f) {
    if (m->data)
        fields_bool(f, "data", true);
    if (in->record->misc & PD_MISC_PROC_MAP_PARSE_TIMEOUT)
        fields_bool(f, "maps_cut_short", true);
    fields_bytes(f, "filename", m->filename);
}

void record_describe_mmap(const PdBody *body, const RecordView *in, Fields *f) {
    record_kernel_describe_range(&body->mmap, f);
    record_kernel_describe_map_misc(&body->mmap, in, f);
}

void record_describe_mmap2(const PdBody *body, const RecordView *in, Fields *f) {
    const PdMmap *m = &body->mmap;
    char prot[5] = "---p";

    record_kernel_describe_range(m, f);
    if (m->build_id)
        fields_hex_bytes(f, "build_id", (Bytes){.data = m->build_id, .size = m->build_id_size});
    else {
        fields_u64(f, "major", m->major);
        fields_u64(f, "minor", m->minor);
        fields_u64(f, "inode", m->inode);
        fields_u64(f, "generation", m->generation);
    }
    if (m->prot & 1)
        prot[0] = 'r';
    if (m->prot & 2)
        prot[1] = 'w';
    if (m->prot & 4)
        prot[2] = 'x';
    if (m->flags & MAP_SHARED_FLAG)
        prot[3] = 's';
    fields_str(f, "prot", prot);
    fields_hex(f, "flags", m->flags);
    record_kernel_describe_map_misc(m, in, f);
}

void record_describe_comm(const PdBody *body, const RecordView *in, Fields *f) {
    describe_id(f, "pid", body->comm.pid);
    describe_id(f, "tid", body->comm.tid);
    if (body->comm.exec)
        fields_bool(f, "exec", true);
    fields_bytes(f, "comm", body->comm.comm);
}

void record_describe_task(const PdBody *body, const RecordView *in, Fields *f) {
    describe_id(f, "pid", body->task.pid);
    describe_id(f, "tid", body->task.tid);
    describe_id(f, "ppid", body->task.ppid);
    describe_id(f, "ptid", body->task.ptid);
    if (in->record->type == PD_RECORD_FORK && in->record->misc & PD_MISC_FORK_EXEC)
        fields_bool(f, "exec", true);
    fields_time_ns(f, "task_time", body->task.time);
}

void record_describe_lost(const PdBody *body, const RecordView *in, Fields *f) {
    fields_u64(f, "lost_id", body->lost.id);
    fields_u64(f, "lost", body->lost.lost);
}

void record_describe_lost_samples(const PdBody *body, const RecordView *in, Fields *f) {
    fields_u64(f, "lost", body->lost.lost);
}

void record_describe_throttle(const PdBody *body, const RecordView *in, Fields *f) {
    fields_time_ns(f, "throttle_time", body->throttle.time);
    fields_u64(f, "throttle_id", body->throttle.id);
    fields_u64(f, "stream_id", body->throttle.stream_id);
}

void record_describe_read(const PdBody *body, const RecordView *in, Fields *f) {
    describe_id(f, "pid", body->read.pid);
    describe_id(f, "tid", body->read.tid);
    describe_read(&body->read.read, f);
}

void record_describe_aux(const PdBody *body, const RecordView *in, Fields *f) {
    static const char *const flags[] = {"truncated", "overwrite", "partial", "collision"};

    fields_hex(f, "aux_offset", body->aux.offset);
    fields_hex(f, "aux_size", body->aux.size);
    fields_flags(f, "aux_flags", body->aux.flags, flags, ARRAY_SIZE(flags));
}

void record_describe_pid_tid(const PdBody *body, const RecordView *in, Fields *f) {
    describe_id(f, "pid", body->pid_tid.pid);
    describe_id(f, "tid", body->pid_tid.tid);
}

void record_describe_switch(const PdBody *body, const RecordView *in, Fields *f) {
    bool out = in->record->misc & PD_MISC_SWITCH_OUT;

    fields_str(f, "switch", out ? "out" : "in");
    if (out && in->record->misc & PD_MISC_SWITCH_OUT_PREEMPT)
        fields_bool(f, "preempt", true);
}

void record_describe_switch_cpu_wide(const PdBody *body, const RecordView *in, Fields *f) {
    bool out = in->record->misc & PD_MISC_SWITCH_OUT;

    record_describe_switch(body, in, f);
    describe_id(f, out ? "next_pid" : "prev_pid", body->pid_tid.pid);
    describe_id(f, out ? "next_tid" : "prev_tid", body->pid_tid.tid);
}

void record_describe_namespaces(const PdBody *body, const RecordView *in, Fields *f) {
    /* In the order of perf's indices. */
    static const char *const names[] = {"net", "uts", "ipc", "pid", "user", "mnt", "cgroup"};
    const PdNamespaces *n = &body->namespaces;
    bool swap = in->record->swap;

    describe_id(f, "pid", n->pid);
    describe_id(f, "tid", n->tid);
    fields_begin_array(f, "namespaces");
    for (uint64_t i = 0; i < n->n; i++) {
        const uint8_t *link = n->links.data + i * NAMESPACE_LINK_SIZE;

        fields_begin_object(f, NULL);
        fields_choice(f, "name", i, names, ARRAY_SIZE(names));
        fields_u64(f, "device", load_u64(link, swap));
        fields_u64(f, "inode", load_u64(link + 8, swap));
        fields_end_object(f);
    }
    fields_end_array(f);
}

void record_describe_ksymbol(const PdBody *body, const RecordView *in, Fields *f) {
    static const char *const types[] = {"unknown", "bpf", "out_of_line"};
    static const char *const flags[] = {"unregister"};
    const PdKsymbol *k = &body->ksymbol;

    fields_hex(f, "addr", k->addr);
    fields_hex(f, "length", k->length);
    fields_choice(f, "ksym_type", k->ksym_type, types, ARRAY_SIZE(types));
    fields_flags(f, "flags", k->flags, flags, ARRAY_SIZE(flags));
    fields_bytes(f, "name", k->name);
}

void record_describe_bpf_event(const PdBody *body, const RecordView *in, Fields *f) {
    static const char *const types[] = {"unknown", "load", "unload"};
    const PdBpfEvent *b = &body->bpf_event;

    fields_choice(f, "bpf_type", b->bpf_type, types, ARRAY_SIZE(types));
    fields_hex(f, "flags", b->flags);
    fields_u64(f, "prog_id", b->id);
    fields_hex_bytes(f, "tag", (Bytes){.data = b->tag, .size = BPF_TAG_SIZE});
}

void record_describe_cgroup(const PdBody *body, const RecordView *in, Fields *f) {
    fields_u64(f, "cgroup", body->cgroup.id);
    fields_bytes(f, "path", body->cgroup.path);
}

void record_describe_text_poke(const PdBody *body, const RecordView *in, Fields *f) {
    fields_hex(f, "addr", body->text_poke.addr);
    fields_hex_bytes(f, "old_bytes", body->text_poke.old_bytes);
    fields_hex_bytes(f, "new_bytes", body->text_poke.new_bytes);
}

void record_describe_hw_id(const PdBody *body, const RecordView *in, Fields *f) {
    fields_hex(f, "hw_id", body->hw_id);
}

void record_describe_callchain_deferred(const PdBody *body, const RecordView *in, Fields *f) {
    fields_hex(f, "cookie", body->callchain_deferred.cookie);
    describe_callchain("chain", &body->callchain_deferred.chain, f);
}
