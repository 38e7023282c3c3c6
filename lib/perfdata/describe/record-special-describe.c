/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/describe/describe-row.h"

#include <sys/mman.h>

#include "perfdata/feature/environment.h"
#include "util/text.h"

/*
 * The parts of bodies that the fields of a row cannot say, for people and for JSON, in the words of
 * perf. perf's own records have no stamp, so they may use its member names (time, cpu, id).
 */

enum { NAMESPACE_LINK_SIZE = 16 };

void record_describe_mmap2(const PdBody *body, const RecordView *in, Fields *f) {
    const PdMmap *m = &body->mmap;
    char prot[5] = "---p";

    if (m->build_id)
        fields_hex_bytes(f, "build_id", (Bytes){.data = m->build_id, .size = m->build_id_size});
    else {
        fields_u64(f, "major", m->major);
        fields_u64(f, "minor", m->minor);
        fields_u64(f, "inode", m->inode);
        fields_u64(f, "generation", m->generation);
    }
    if (m->prot & PROT_READ)
        prot[0] = 'r';
    if (m->prot & PROT_WRITE)
        prot[1] = 'w';
    if (m->prot & PROT_EXEC)
        prot[2] = 'x';
    if (m->flags & MAP_SHARED)
        prot[3] = 's';
    fields_str(f, "prot", prot);
}

void record_describe_read(const PdBody *body, const RecordView *in, Fields *f) {
    describe_read(&body->read.read, f);
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

    for (uint64_t i = fields_begin_list(f, "namespaces"); fields_next(f, i, n->n); i++) {
        const uint8_t *link = n->links.data + i * NAMESPACE_LINK_SIZE;

        fields_choice(f, "name", i, names, ARRAY_SIZE(names));
        fields_u64(f, "device", load_u64(link, swap));
        fields_u64(f, "inode", load_u64(link + 8, swap));
    }
}

void record_describe_text_poke(const PdBody *body, const RecordView *in, Fields *f) {
    fields_hex_bytes(f, "old_bytes", body->text_poke.old_bytes);
    fields_hex_bytes(f, "new_bytes", body->text_poke.new_bytes);
}

void record_describe_callchain_deferred(const PdBody *body, const RecordView *in, Fields *f) {
    describe_callchain("chain", &body->callchain_deferred.chain, f);
}

static Bytes record_special_describe_fixed_text(const uint8_t *p, size_t n) {
    Cursor c = cursor_of(p, n, false);

    return cursor_string(&c);
}

void record_describe_header_attr(const PdBody *body, const RecordView *in, Fields *f) {
    const PdHeaderAttr *h = &body->header_attr;
    PdAttr attr;

    fields_begin_object(f, "attr");
    if (pd_attr_parse(&attr, h->attr, in->record->swap) >= 0)
        pd_attr_describe(&attr, f);
    fields_end_object(f);
    fields_begin_array(f, "ids");
    for (uint64_t i = 0; i < h->n_ids; i++)
        fields_u64(f, NULL, load_u64(h->ids.data + i * 8, in->record->swap));
    fields_end_array(f);
}

void record_describe_build_id(const PdBody *body, const RecordView *in, Fields *f) {
    const PdBuildId *b = &body->build_id;

    fields_hex_bytes(f, "build_id", (Bytes){.data = b->build_id, .size = b->size});
}

void record_describe_id_index(const PdBody *body, const RecordView *in, Fields *f) {
    const PdIdIndex *x = &body->id_index;
    Cursor c = cursor_of(x->entries.data, x->entries.size, in->record->swap);
    Cursor machines = c;

    if (x->machines.data)
        machines = cursor_of(x->machines.data, x->machines.size, in->record->swap);
    for (uint64_t i = fields_begin_list(f, "entries"); fields_next(f, i, x->n); i++) {
        fields_u64(f, "id", cursor_u64(&c));
        fields_u64(f, "idx", cursor_u64(&c));
        fields_i64(f, "cpu", (int64_t)cursor_u64(&c));
        fields_i64(f, "tid", (int64_t)cursor_u64(&c));
        if (x->machines.data) {
            fields_u64(f, "machine_pid", cursor_u64(&machines));
            fields_u64(f, "vcpu", cursor_u64(&machines));
        }
    }
}

void record_describe_auxtrace_info(const PdBody *body, const RecordView *in, Fields *f) {
    const PdAuxtraceInfo *a = &body->auxtrace_info;

    fields_hex_array(f, "priv", a->priv.data, a->priv.size / 8, in->record->swap);
}

void record_describe_auxtrace_error(const PdBody *body, const RecordView *in, Fields *f) {
    const PdAuxtraceError *e = &body->auxtrace_error;

    if (e->fmt > 0)
        fields_time_ns(f, "time", e->time);
    describe_id(f, "cpu", e->cpu);
    describe_id(f, "pid", e->pid);
    describe_id(f, "tid", e->tid);
    fields_hex(f, "ip", e->ip);
    if (e->machine_pid) {
        fields_u64(f, "machine_pid", e->machine_pid);
        fields_u64(f, "vcpu", e->vcpu);
    }
    fields_bytes(f, "message", e->message);
}

void record_describe_thread_map(const PdBody *body, const RecordView *in, Fields *f) {
    enum { ENTRY_SIZE = 24, COMM_SIZE = 16 };
    const PdThreadMap *m = &body->thread_map;

    for (uint64_t i = fields_begin_list(f, "threads"); fields_next(f, i, m->n); i++) {
        const uint8_t *entry = m->entries.data + i * ENTRY_SIZE;

        fields_i64(f, "tid", (int64_t)load_u64(entry, in->record->swap));
        fields_bytes(f, "comm", record_special_describe_fixed_text(entry + 8, COMM_SIZE));
    }
}

/* Prints a CPU list like the kernel does; CPUs must be added in ascending order. */
typedef struct CpuList {
    Buffer text;
    int64_t first, last;
    bool open;
} CpuList;

static void record_special_describe_cpu_list_flush(CpuList *l) {
    if (!l->open)
        return;
    if (l->text.size > 0)
        text_putc(&l->text, ',');
    text_i64(&l->text, l->first);
    if (l->last > l->first) {
        text_putc(&l->text, '-');
        text_i64(&l->text, l->last);
    }
    l->open = false;
}

static void record_special_describe_cpu_list_add(CpuList *l, int64_t cpu) {
    if (l->open && cpu >= 0 && l->last >= 0 && cpu == l->last + 1) {
        l->last = cpu;
        return;
    }
    record_special_describe_cpu_list_flush(l);
    l->first = l->last = cpu;
    l->open = true;
}

static void record_special_describe_list_mask(CpuList *l, const PdCpuMap *m, bool swap) {
    for (uint32_t i = 0; i < m->n; i++) {
        const uint8_t *p = m->data.data + (size_t)i * m->long_size;
        uint64_t bits = m->long_size == 8 ? load_u64(p, swap) : load_u32(p, swap);

        for (; bits; bits &= bits - 1)
            record_special_describe_cpu_list_add(l, (int64_t)i * m->long_size * 8 +
                                                        __builtin_ctzll(bits));
    }
}

static void record_special_describe_cpus(const PdCpuMap *m, bool swap, Fields *f) {
    static const char *const kinds[] = {"list", "mask", "range"};
    CpuList l = {};

    if (m->kind == PD_CPU_MAP_LIST)
        for (uint32_t i = 0; i < m->n; i++)
            record_special_describe_cpu_list_add(
                &l, (int16_t)load_u16(m->data.data + (size_t)i * 2, swap));
    else if (m->kind == PD_CPU_MAP_MASK)
        record_special_describe_list_mask(&l, m, swap);
    else {
        if (m->any_cpu)
            record_special_describe_cpu_list_add(&l, -1);
        record_special_describe_cpu_list_flush(&l);
        if (m->start <= m->end) {
            l.first = m->start;
            l.last = m->end;
            l.open = true;
        }
    }
    record_special_describe_cpu_list_flush(&l);
    fields_choice(f, "encoding", m->kind, kinds, ARRAY_SIZE(kinds));
    fields_bytes(f, "cpus", buffer_bytes(&l.text));
    buffer_done(&l.text);
}

void record_describe_cpu_map(const PdBody *body, const RecordView *in, Fields *f) {
    record_special_describe_cpus(&body->cpu_map, in->record->swap, f);
}

void record_describe_stat_config(const PdBody *body, const RecordView *in, Fields *f) {
    static const char *const tags[] = {"aggr_mode", "interval", "scale", "aggr_level"};
    const PdStatConfig *s = &body->stat_config;
    Cursor c = cursor_of(s->entries.data, s->entries.size, in->record->swap);

    for (uint64_t i = fields_begin_list(f, "config"); fields_next(f, i, s->n); i++) {
        fields_choice(f, "tag", cursor_u64(&c), tags, ARRAY_SIZE(tags));
        fields_u64(f, "value", cursor_u64(&c));
    }
}

void record_describe_event_update(const PdBody *body, const RecordView *in, Fields *f) {
    const PdEventUpdate *u = &body->event_update;

    if (u->update_type == PD_EVENT_UPDATE_SCALE)
        fields_double(f, "scale", u->scale);
    else if (u->update_type == PD_EVENT_UPDATE_CPUS)
        record_special_describe_cpus(&u->cpus, in->record->swap, f);
    else
        fields_bytes(f,
                     u->update_type == PD_EVENT_UPDATE_UNIT   ? "unit"
                     : u->update_type == PD_EVENT_UPDATE_NAME ? "name"
                                                              : "value",
                     u->text);
}

void record_describe_time_conv(const PdBody *body, const RecordView *in, Fields *f) {
    const PdTimeConv *t = &body->time_conv;

    if (!t->has_cycles)
        return;
    fields_u64(f, "time_cycles", t->cycles);
    fields_hex(f, "time_mask", t->mask);
    fields_u64(f, "cap_user_time_zero", t->cap_user_time_zero);
    fields_u64(f, "cap_user_time_short", t->cap_user_time_short);
}

void record_describe_header_feature(const PdBody *body, const RecordView *in, Fields *f) {
    const PdHeaderFeature *h = &body->header_feature;
    const char *name = h->feature < PD_FEATURE_BITS ? pd_feature_name((unsigned)h->feature) : NULL;

    /* An empty body marks the end of the features; its number differs between releases. */
    if (h->body.size > 0 && name)
        fields_str(f, "name", name);
    fields_u64(f, "body_size", h->body.size);
}

void record_describe_compressed(const PdBody *body, const RecordView *in, Fields *f) {
    fields_u64(f, "frame_size", body->compressed.frame.size);
}

void record_describe_bpf_metadata(const PdBody *body, const RecordView *in, Fields *f) {
    enum { KEY_SIZE = 64, VALUE_SIZE = 256 };
    const PdBpfMetadata *b = &body->bpf_metadata;

    for (uint64_t i = fields_begin_list(f, "entries"); fields_next(f, i, b->n); i++) {
        const uint8_t *entry = b->entries.data + i * (KEY_SIZE + VALUE_SIZE);

        fields_bytes(f, "key", record_special_describe_fixed_text(entry, KEY_SIZE));
        fields_bytes(f, "value", record_special_describe_fixed_text(entry + KEY_SIZE, VALUE_SIZE));
    }
}
