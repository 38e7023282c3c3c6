/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/describe/describe-row.h"
#include "perfdata/feature/environment.h"
#include "util/text.h"

/*
 * Bodies of perf's own records for people and for JSON. These records have no stamp, so they may
 * use its member names (time, cpu, id).
 */

static Bytes record_tool_describe_fixed_text(const uint8_t *p, size_t n) {
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

void record_describe_event_type(const PdBody *body, const RecordView *in, Fields *f) {
    fields_u64(f, "event_id", body->event_type.id);
    fields_bytes(f, "name", body->event_type.name);
}

void record_describe_tracing_data(const PdBody *body, const RecordView *in, Fields *f) {
    fields_u64(f, "tracing_size", body->tracing_data_size);
}

void record_describe_build_id(const PdBody *body, const RecordView *in, Fields *f) {
    const PdBuildId *b = &body->build_id;

    describe_id(f, "pid", b->pid);
    fields_hex_bytes(f, "build_id", (Bytes){.data = b->build_id, .size = b->size});
    fields_bytes(f, "filename", b->filename);
}

void record_describe_id_index(const PdBody *body, const RecordView *in, Fields *f) {
    const PdIdIndex *x = &body->id_index;
    Cursor c = cursor_of(x->entries.data, x->entries.size, in->record->swap);
    Cursor machines = c;

    if (x->machines.data)
        machines = cursor_of(x->machines.data, x->machines.size, in->record->swap);
    fields_begin_array(f, "entries");
    for (uint64_t i = 0; i < x->n; i++) {
        fields_begin_object(f, NULL);
        fields_u64(f, "id", cursor_u64(&c));
        fields_u64(f, "idx", cursor_u64(&c));
        fields_i64(f, "cpu", (int64_t)cursor_u64(&c));
        fields_i64(f, "tid", (int64_t)cursor_u64(&c));
        if (x->machines.data) {
            fields_u64(f, "machine_pid", cursor_u64(&machines));
            fields_u64(f, "vcpu", cursor_u64(&machines));
        }
        fields_end_object(f);
    }
    fields_end_array(f);
}

void record_describe_auxtrace_info(const PdBody *body, const RecordView *in, Fields *f) {
    static const char *const types[] = {"unknown", "intel_pt",    "intel_bts", "cs_etm",
                                        "arm_spe", "s390_cpumsf", "hisi_ptt",  "vpa_dtl"};
    const PdAuxtraceInfo *a = &body->auxtrace_info;

    fields_choice(f, "auxtrace_type", a->auxtrace_type, types, ARRAY_SIZE(types));
    fields_hex_array(f, "priv", a->priv.data, a->priv.size / 8, in->record->swap);
}

void record_describe_auxtrace(const PdBody *body, const RecordView *in, Fields *f) {
    const PdAuxtrace *a = &body->auxtrace;

    fields_hex(f, "aux_size", a->size);
    fields_hex(f, "aux_offset", a->offset);
    fields_hex(f, "reference", a->reference);
    fields_u64(f, "idx", a->idx);
    describe_id(f, "tid", a->tid);
    describe_id(f, "cpu", a->cpu);
}

void record_describe_auxtrace_error(const PdBody *body, const RecordView *in, Fields *f) {
    static const char *const types[] = {NULL, "instruction_trace"};
    const PdAuxtraceError *e = &body->auxtrace_error;

    fields_choice(f, "error_type", e->error_type, types, ARRAY_SIZE(types));
    fields_u64(f, "code", e->code);
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

    fields_begin_array(f, "threads");
    for (uint64_t i = 0; i < m->n; i++) {
        const uint8_t *entry = m->entries.data + i * ENTRY_SIZE;

        fields_begin_object(f, NULL);
        fields_i64(f, "tid", (int64_t)load_u64(entry, in->record->swap));
        fields_bytes(f, "comm", record_tool_describe_fixed_text(entry + 8, COMM_SIZE));
        fields_end_object(f);
    }
    fields_end_array(f);
}

/* Prints a CPU list like the kernel does; CPUs must be added in ascending order. */
typedef struct CpuList {
    Buffer text;
    int64_t first, last;
    bool open;
} CpuList;

static void record_tool_describe_cpu_list_flush(CpuList *l) {
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

static void record_tool_describe_cpu_list_add(CpuList *l, int64_t cpu) {
    if (l->open && cpu >= 0 && l->last >= 0 && cpu == l->last + 1) {
        l->last = cpu;
        return;
    }
    record_tool_describe_cpu_list_flush(l);
    l->first = l->last = cpu;
    l->open = true;
}

static void record_tool_describe_list_mask(CpuList *l, const PdCpuMap *m, bool swap) {
    for (uint32_t i = 0; i < m->n; i++) {
        const uint8_t *p = m->data.data + (size_t)i * m->long_size;
        uint64_t bits = m->long_size == 8 ? load_u64(p, swap) : load_u32(p, swap);

        for (; bits; bits &= bits - 1)
            record_tool_describe_cpu_list_add(l, (int64_t)i * m->long_size * 8 +
                                                     __builtin_ctzll(bits));
    }
}

static void record_tool_describe_cpus(const PdCpuMap *m, bool swap, Fields *f) {
    static const char *const kinds[] = {"list", "mask", "range"};
    CpuList l = {};

    if (m->kind == PD_CPU_MAP_LIST)
        for (uint32_t i = 0; i < m->n; i++)
            record_tool_describe_cpu_list_add(
                &l, (int16_t)load_u16(m->data.data + (size_t)i * 2, swap));
    else if (m->kind == PD_CPU_MAP_MASK)
        record_tool_describe_list_mask(&l, m, swap);
    else {
        if (m->any_cpu)
            record_tool_describe_cpu_list_add(&l, -1);
        record_tool_describe_cpu_list_flush(&l);
        if (m->start <= m->end) {
            l.first = m->start;
            l.last = m->end;
            l.open = true;
        }
    }
    record_tool_describe_cpu_list_flush(&l);
    fields_choice(f, "encoding", m->kind, kinds, ARRAY_SIZE(kinds));
    fields_bytes(f, "cpus", buffer_bytes(&l.text));
    buffer_done(&l.text);
}

void record_describe_cpu_map(const PdBody *body, const RecordView *in, Fields *f) {
    record_tool_describe_cpus(&body->cpu_map, in->record->swap, f);
}

void record_describe_stat_config(const PdBody *body, const RecordView *in, Fields *f) {
    static const char *const tags[] = {"aggr_mode", "interval", "scale", "aggr_level"};
    const PdStatConfig *s = &body->stat_config;
    Cursor c = cursor_of(s->entries.data, s->entries.size, in->record->swap);

    fields_begin_array(f, "config");
    for (uint64_t i = 0; i < s->n; i++) {
        fields_begin_object(f, NULL);
        fields_choice(f, "tag", cursor_u64(&c), tags, ARRAY_SIZE(tags));
        fields_u64(f, "value", cursor_u64(&c));
        fields_end_object(f);
    }
    fields_end_array(f);
}

void record_describe_stat(const PdBody *body, const RecordView *in, Fields *f) {
    const PdStat *s = &body->stat;

    fields_u64(f, "id", s->id);
    describe_id(f, "cpu", s->cpu);
    describe_id(f, "thread", s->thread);
    fields_u64(f, "value", s->value);
    fields_u64(f, "enabled", s->enabled);
    fields_u64(f, "running", s->running);
}

void record_describe_stat_round(const PdBody *body, const RecordView *in, Fields *f) {
    static const char *const types[] = {"interval", "final"};

    fields_choice(f, "round", body->stat_round.type, types, ARRAY_SIZE(types));
    fields_time_ns(f, "time", body->stat_round.time);
}

void record_describe_event_update(const PdBody *body, const RecordView *in, Fields *f) {
    static const char *const types[] = {"unit", "scale", "name", "cpus"};
    const PdEventUpdate *u = &body->event_update;

    fields_u64(f, "id", u->id);
    fields_choice(f, "update", u->update_type, types, ARRAY_SIZE(types));
    if (u->update_type == PD_EVENT_UPDATE_SCALE)
        fields_double(f, "scale", u->scale);
    else if (u->update_type == PD_EVENT_UPDATE_CPUS)
        record_tool_describe_cpus(&u->cpus, in->record->swap, f);
    else
        fields_bytes(f,
                     u->update_type == PD_EVENT_UPDATE_UNIT   ? "unit"
                     : u->update_type == PD_EVENT_UPDATE_NAME ? "name"
                                                              : "value",
                     u->text);
}

void record_describe_time_conv(const PdBody *body, const RecordView *in, Fields *f) {
    const PdTimeConv *t = &body->time_conv;

    fields_u64(f, "time_shift", t->shift);
    fields_u64(f, "time_mult", t->mult);
    fields_u64(f, "time_zero", t->zero);
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
    fields_u64(f, "feature", h->feature);
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

    fields_bytes(f, "prog_name", b->prog_name);
    fields_begin_array(f, "entries");
    for (uint64_t i = 0; i < b->n; i++) {
        const uint8_t *entry = b->entries.data + i * (KEY_SIZE + VALUE_SIZE);

        fields_begin_object(f, NULL);
        fields_bytes(f, "key", record_tool_describe_fixed_text(entry, KEY_SIZE));
        fields_bytes(f, "value", record_tool_describe_fixed_text(entry + KEY_SIZE, VALUE_SIZE));
        fields_end_object(f);
    }
    fields_end_array(f);
}

void record_describe_schedstat(const PdBody *body, const RecordView *in, Fields *f) {
    const PdSchedstat *s = &body->schedstat;

    fields_u64(f, "timestamp", s->timestamp);
    describe_id(f, "cpu", s->cpu);
    fields_u64(f, "version", s->version);
    if (in->record->type == PD_RECORD_SCHEDSTAT_DOMAIN)
        fields_u64(f, "domain", s->domain);
    fields_hex_bytes(f, "counters", s->counters);
}
