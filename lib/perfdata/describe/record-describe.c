/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/describe/record-describe.h"

#include "perfdata/describe/describe-row.h"
#include "perfdata/record/record-row.h"

/*
 * What pd_record_describe() prints for any record: its header, its stamp, and then the fields of
 * its body, by the function of its type. Every member of a record has a unique name: where the body
 * has a `pid` and `tid` (the task that a COMM is about), those of the stamp become `stamp_pid` and
 * `stamp_tid`.
 */

static const char *const cpumodes[] = {"unknown",    "kernel",       "user",
                                       "hypervisor", "guest_kernel", "guest_user"};

/* clang-format off */
static const struct { uint32_t type; RecordDescribe *describe; } special[] = {
    {PD_RECORD_SAMPLE,             record_describe_sample},
    {PD_RECORD_MMAP2,              record_describe_mmap2},
    {PD_RECORD_READ,               record_describe_read},
    {PD_RECORD_SWITCH,             record_describe_switch},
    {PD_RECORD_SWITCH_CPU_WIDE,    record_describe_switch_cpu_wide},
    {PD_RECORD_NAMESPACES,         record_describe_namespaces},
    {PD_RECORD_TEXT_POKE,          record_describe_text_poke},
    {PD_RECORD_CALLCHAIN_DEFERRED, record_describe_callchain_deferred},
    {PD_RECORD_HEADER_ATTR,        record_describe_header_attr},
    {PD_RECORD_BUILD_ID,           record_describe_build_id},
    {PD_RECORD_ID_INDEX,           record_describe_id_index},
    {PD_RECORD_AUXTRACE_INFO,      record_describe_auxtrace_info},
    {PD_RECORD_AUXTRACE_ERROR,     record_describe_auxtrace_error},
    {PD_RECORD_THREAD_MAP,         record_describe_thread_map},
    {PD_RECORD_CPU_MAP,            record_describe_cpu_map},
    {PD_RECORD_STAT_CONFIG,        record_describe_stat_config},
    {PD_RECORD_EVENT_UPDATE,       record_describe_event_update},
    {PD_RECORD_TIME_CONV,          record_describe_time_conv},
    {PD_RECORD_HEADER_FEATURE,     record_describe_header_feature},
    {PD_RECORD_COMPRESSED,         record_describe_compressed},
    {PD_RECORD_COMPRESSED2,        record_describe_compressed},
    {PD_RECORD_BPF_METADATA,       record_describe_bpf_metadata},
};
/* clang-format on */

static void record_describe_header(const PdRecord *r, const RecordRow *row, Fields *f) {
    if (row)
        fields_str(f, "type", row->name);
    else
        fields_u64(f, "type", r->type);
    if (r->file > 0)
        fields_u64(f, "file", r->file - 1);
    fields_u64(f, "offset", r->offset);
    if (r->decompressed)
        fields_bool(f, "decompressed", true);
    fields_u64(f, "size", r->size);
    if (r->payload > 0)
        fields_u64(f, "payload", r->payload);
    if (r->type > PD_RECORD_SIMPLEPERF) /* misc holds the upper bits of the size */
        return;
    fields_hex(f, "misc", r->misc);
    if (r->type < PD_RECORD_USER || r->type == PD_RECORD_BUILD_ID)
        fields_choice(f, "cpumode", r->misc & PD_MISC_CPUMODE_MASK, cpumodes, ARRAY_SIZE(cpumodes));
}

static void record_describe_stamp(const PdStamp *s, bool tasks, Fields *f) {
    if (s->has_time)
        fields_time_ns(f, "time", s->time);
    if (s->has_cpu)
        describe_id(f, "cpu", s->cpu);
    if (s->has_tid) {
        describe_id(f, tasks ? "stamp_pid" : "pid", s->pid);
        describe_id(f, tasks ? "stamp_tid" : "tid", s->tid);
    }
    if (s->has_id)
        fields_u64(f, "id", s->id);
    if (s->event && s->event->name)
        fields_str(f, "event", s->event->name);
}

/* Shows a record that cannot be parsed as bytes. */
static void record_describe_bytes(const PdRecord *r, const char *why, Fields *f) {
    if (why)
        fields_str(f, "error", why);
    if (r->size > PD_RECORD_HEADER_SIZE)
        fields_hex_bytes(f, "bytes",
                         (Bytes){.data = r->data + PD_RECORD_HEADER_SIZE,
                                 .size = r->size - PD_RECORD_HEADER_SIZE});
}

static const char *record_describe_why_not(const PdRecord *r, const PdEvent *event) {
    if (!event && (r->type == PD_RECORD_SAMPLE || r->type == PD_RECORD_READ))
        return "no event has its id, so its fields are not known";
    return "it does not hold what its type announces";
}

/* The special part of a body. */
static void record_describe_special(const PdBody *body, const RecordView *in, Fields *f) {
    for (size_t i = 0; i < ARRAY_SIZE(special); i++)
        if (special[i].type == in->record->type) {
            special[i].describe(body, in, f);
            return;
        }
}

static void record_describe_field(const RecordField *field, const PdBody *body,
                                  const RecordView *in, Fields *f) {
    const void *member = (const uint8_t *)body + field->member;
    uint64_t v = field->kind <= FIELD_FLAGS ? load_uint(member, field->size, false) : 0;
    const char *name = field->name;

    switch (field->kind) {
    case FIELD_NUMBER:
        fields_u64(f, name, v);
        break;
    case FIELD_ID:
        describe_id(f, name, (uint32_t)v);
        break;
    case FIELD_HEX:
        fields_hex(f, name, v);
        break;
    case FIELD_TIME:
        fields_time_ns(f, name, v);
        break;
    case FIELD_CHOICE:
        fields_choice(f, name, v, field->words, field->n);
        break;
    case FIELD_FLAGS:
        fields_flags(f, name, v, field->words, field->n);
        break;
    case FIELD_TEXT:
        fields_bytes(f, name, *(const Bytes *)member);
        break;
    case FIELD_BYTES:
        fields_hex_bytes(f, name, (Bytes){*(const uint8_t *const *)member, field->n});
        break;
    case FIELD_REST:
        fields_hex_bytes(f, name, *(const Bytes *)member);
        break;
    default:
        if (field->kind == FIELD_MISC && in->record->misc & field->at)
            fields_bool(f, name, true);
    }
}

static void record_describe_body(const RecordField *field, const PdBody *body, const RecordView *in,
                                 Fields *f) {
    for (; field->kind != FIELD_END; field++)
        if (field->kind == FIELD_SPECIAL)
            record_describe_special(body, in, f);
        else if (field->name)
            record_describe_field(field, body, in, f);
}

void pd_record_describe(const PdRecord *record, const PdStamp *stamp, const PdTracing *tracing,
                        Fields *fields) {
    const RecordRow *row = record_row(record->type);
    RecordView view = {.record = record, .stamp = stamp, .tracing = tracing};
    PdBody body;
    int r;

    record_describe_header(record, row, fields);
    record_describe_stamp(stamp, row && row->tasks, fields);
    if (!row || !row->fields) {
        record_describe_bytes(record, NULL, fields);
        return;
    }
    r = record_parse_into(row, record, stamp->event, &body);
    if (r < 0)
        record_describe_bytes(record, record_describe_why_not(record, stamp->event), fields);
    else
        record_describe_body(row->fields, &body, &view, fields);
}
