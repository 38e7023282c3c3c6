/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "perfdata/record/record-row.h"

/*
 * The table of record types and of the fields of their bodies, and the functions that use it:
 * names, parsing and writing of a body. The special parsers are in record-special.c. A parser gets
 * a cursor over the body without header and trailer and cannot read beyond it, so the worst result
 * of a hostile record is -EBADMSG.
 */

/* A member of PdBody, or none. */
#define BODY(m) .member = offsetof(PdBody, m), .size = sizeof(((PdBody *)NULL)->m)
#define NOWHERE .member = 0, .size = 0
#define WORDS(...)                                                                                 \
    .words = (const char *const[]){__VA_ARGS__},                                                   \
    .n = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)
#define FIELDS(...)                                                                                \
    (const RecordField[]) {                                                                        \
        __VA_ARGS__, {                                                                             \
        }                                                                                          \
    }

/* What two types have in common. */
/* clang-format off */
#define MMAP_RANGE                                                                                 \
        {FIELD_ID,     BODY(mmap.pid),    0,  "pid"},                                              \
        {FIELD_ID,     BODY(mmap.tid),    4,  "tid"},                                              \
        {FIELD_HEX,    BODY(mmap.start),  8,  "start"},                                            \
        {FIELD_HEX,    BODY(mmap.length), 16, "length"},                                           \
        {FIELD_HEX,    BODY(mmap.pgoff),  24, "pgoff"}
#define MMAP_MISC                                                                                  \
        {FIELD_MISC,   BODY(mmap.data),   PD_MISC_MMAP_DATA,              "data"},                 \
        {FIELD_MISC,   NOWHERE,           PD_MISC_PROC_MAP_PARSE_TIMEOUT, "maps_cut_short"}
#define TASK_IDS                                                                                   \
        {FIELD_ID,     BODY(task.pid),  0,  "pid"},                                                \
        {FIELD_ID,     BODY(task.tid),  8,  "tid"},                                                \
        {FIELD_ID,     BODY(task.ppid), 4,  "ppid"},                                               \
        {FIELD_ID,     BODY(task.ptid), 12, "ptid"}
#define THROTTLE_FIELDS                                                                            \
        {FIELD_TIME,   BODY(throttle.time),      0,  "throttle_time"},                             \
        {FIELD_NUMBER, BODY(throttle.id),        8,  "throttle_id"},                               \
        {FIELD_NUMBER, BODY(throttle.stream_id), 16, "stream_id"}
#define SCHEDSTAT_HEAD                                                                             \
        {FIELD_NUMBER, BODY(schedstat.timestamp), 0,  "timestamp"},                                \
        {FIELD_ID,     BODY(schedstat.cpu),       8,  "cpu"},                                      \
        {FIELD_NUMBER, BODY(schedstat.version),   12, "version"}

static const RecordRow rows[] = {
    {PD_RECORD_MMAP, "MMAP", true, NULL, FIELDS(
        MMAP_RANGE,
        MMAP_MISC,
        {FIELD_TEXT,   BODY(mmap.filename), 32, "filename"})},
    {PD_RECORD_LOST, "LOST", false, NULL, FIELDS(
        {FIELD_NUMBER, BODY(lost.id),   0, "lost_id"},
        {FIELD_NUMBER, BODY(lost.lost), 8, "lost"})},
    {PD_RECORD_COMM, "COMM", true, NULL, FIELDS(
        {FIELD_ID,     BODY(comm.pid),  0, "pid"},
        {FIELD_ID,     BODY(comm.tid),  4, "tid"},
        {FIELD_MISC,   BODY(comm.exec), PD_MISC_COMM_EXEC, "exec"},
        {FIELD_TEXT,   BODY(comm.comm), 8, "comm"})},
    {PD_RECORD_EXIT, "EXIT", true, NULL, FIELDS(
        TASK_IDS,
        {FIELD_TIME,   BODY(task.time), 16, "task_time"})},
    {PD_RECORD_THROTTLE,   "THROTTLE",   false, NULL, FIELDS(THROTTLE_FIELDS)},
    {PD_RECORD_UNTHROTTLE, "UNTHROTTLE", false, NULL, FIELDS(THROTTLE_FIELDS)},
    {PD_RECORD_FORK, "FORK", true, NULL, FIELDS(
        TASK_IDS,
        {FIELD_MISC,   NOWHERE,         PD_MISC_FORK_EXEC, "exec"},
        {FIELD_TIME,   BODY(task.time), 16, "task_time"})},
    {PD_RECORD_READ, "READ", true, record_parse_read, FIELDS(
        {FIELD_ID,     BODY(read.pid), 0, "pid"},
        {FIELD_ID,     BODY(read.tid), 4, "tid"},
        {FIELD_SPECIAL, .at = 8})},
    {PD_RECORD_SAMPLE, "SAMPLE", false, record_parse_sample, FIELDS({FIELD_SPECIAL, .at = 0})},
    {PD_RECORD_MMAP2, "MMAP2", true, record_parse_mmap2, FIELDS(
        MMAP_RANGE,
        {FIELD_NUMBER, BODY(mmap.prot),     56, NULL},
        {FIELD_SPECIAL, .at = 32},
        {FIELD_HEX,    BODY(mmap.flags),    60, "flags"},
        MMAP_MISC,
        {FIELD_TEXT,   BODY(mmap.filename), 64, "filename"})},
    {PD_RECORD_AUX, "AUX", false, NULL, FIELDS(
        {FIELD_HEX,    BODY(aux.offset), 0,  "aux_offset"},
        {FIELD_HEX,    BODY(aux.size),   8,  "aux_size"},
        {FIELD_FLAGS,  BODY(aux.flags),  16, "aux_flags", WORDS("truncated", "overwrite", "partial", "collision")})},
    {PD_RECORD_ITRACE_START, "ITRACE_START", true, NULL, FIELDS(
        {FIELD_ID,     BODY(pid_tid.pid), 0, "pid"},
        {FIELD_ID,     BODY(pid_tid.tid), 4, "tid"})},
    {PD_RECORD_LOST_SAMPLES, "LOST_SAMPLES", false, NULL, FIELDS(
        {FIELD_NUMBER, BODY(lost.lost), 0, "lost"})},
    {PD_RECORD_SWITCH, "SWITCH", false, NULL, FIELDS({FIELD_SPECIAL, .at = 0})},
    {PD_RECORD_SWITCH_CPU_WIDE, "SWITCH_CPU_WIDE", false, NULL, FIELDS(
        {FIELD_ID,     BODY(pid_tid.pid), 0, NULL},
        {FIELD_ID,     BODY(pid_tid.tid), 4, NULL},
        {FIELD_SPECIAL, .at = 0})},
    {PD_RECORD_NAMESPACES, "NAMESPACES", true, NULL, FIELDS(
        {FIELD_ID,     BODY(namespaces.pid), 0, "pid"},
        {FIELD_ID,     BODY(namespaces.tid), 4, "tid"},
        {FIELD_ARRAY,  BODY(namespaces.n),   8, NULL, .n = 16},
        {FIELD_SPECIAL, .at = 0})},
    {PD_RECORD_KSYMBOL, "KSYMBOL", false, NULL, FIELDS(
        {FIELD_HEX,    BODY(ksymbol.addr),      0,  "addr"},
        {FIELD_HEX,    BODY(ksymbol.length),    8,  "length"},
        {FIELD_CHOICE, BODY(ksymbol.ksym_type), 12, "ksym_type", WORDS("unknown", "bpf", "out_of_line")},
        {FIELD_FLAGS,  BODY(ksymbol.flags),     14, "flags",     WORDS("unregister")},
        {FIELD_TEXT,   BODY(ksymbol.name),      16, "name"})},
    {PD_RECORD_BPF_EVENT, "BPF_EVENT", false, NULL, FIELDS(
        {FIELD_CHOICE, BODY(bpf_event.bpf_type), 0, "bpf_type", WORDS("unknown", "load", "unload")},
        {FIELD_HEX,    BODY(bpf_event.flags),    2, "flags"},
        {FIELD_NUMBER, BODY(bpf_event.id),       4, "prog_id"},
        {FIELD_BYTES,  BODY(bpf_event.tag),      8, "tag", .n = 8})},
    {PD_RECORD_CGROUP, "CGROUP", false, NULL, FIELDS(
        {FIELD_NUMBER, BODY(cgroup.id),   0, "cgroup"},
        {FIELD_TEXT,   BODY(cgroup.path), 8, "path"})},
    {PD_RECORD_TEXT_POKE, "TEXT_POKE", false, record_parse_text_poke, FIELDS(
        {FIELD_HEX,    BODY(text_poke.addr), 0, "addr"},
        {FIELD_SPECIAL, .at = 8})},
    {PD_RECORD_AUX_OUTPUT_HW_ID, "AUX_OUTPUT_HW_ID", false, NULL, FIELDS(
        {FIELD_HEX,    BODY(hw_id), 0, "hw_id"})},
    {PD_RECORD_CALLCHAIN_DEFERRED, "CALLCHAIN_DEFERRED", false, record_parse_callchain_deferred, FIELDS(
        {FIELD_HEX,    BODY(callchain_deferred.cookie), 0, "cookie"},
        {FIELD_SPECIAL, .at = 8})},

    {PD_RECORD_HEADER_ATTR, "HEADER_ATTR", false, record_parse_header_attr, FIELDS({FIELD_SPECIAL, .at = 0})},
    {PD_RECORD_EVENT_TYPE, "EVENT_TYPE", false, NULL, FIELDS(
        {FIELD_NUMBER, BODY(event_type.id),   0, "event_id"},
        {FIELD_TEXT,   BODY(event_type.name), 8, "name", .n = 64})},
    {PD_RECORD_TRACING_DATA, "TRACING_DATA", false, NULL, FIELDS(
        {FIELD_NUMBER, BODY(tracing_data_size), 0, "tracing_size"})},
    {PD_RECORD_BUILD_ID, "BUILD_ID", false, record_parse_build_id, FIELDS(
        {FIELD_ID,     BODY(build_id.pid),      0,  "pid"},
        {FIELD_SPECIAL, .at = 4},
        {FIELD_TEXT,   BODY(build_id.filename), 28, "filename"})},
    {PD_RECORD_FINISHED_ROUND, "FINISHED_ROUND", false, NULL, FIELDS({})},
    {PD_RECORD_ID_INDEX, "ID_INDEX", false, record_parse_id_index, FIELDS({FIELD_SPECIAL, .at = 0})},
    {PD_RECORD_AUXTRACE_INFO, "AUXTRACE_INFO", false, record_parse_auxtrace_info, FIELDS(
        {FIELD_CHOICE, BODY(auxtrace_info.auxtrace_type), 0, "auxtrace_type",
         WORDS("unknown", "intel_pt", "intel_bts", "cs_etm", "arm_spe", "s390_cpumsf", "hisi_ptt", "vpa_dtl")},
        {FIELD_SPECIAL, .at = 8})},
    {PD_RECORD_AUXTRACE, "AUXTRACE", false, NULL, FIELDS(
        {FIELD_HEX,    BODY(auxtrace.size),      0,  "aux_size"},
        {FIELD_HEX,    BODY(auxtrace.offset),    8,  "aux_offset"},
        {FIELD_HEX,    BODY(auxtrace.reference), 16, "reference"},
        {FIELD_NUMBER, BODY(auxtrace.idx),       24, "idx"},
        {FIELD_ID,     BODY(auxtrace.tid),       28, "tid"},
        {FIELD_ID,     BODY(auxtrace.cpu),       32, "cpu"})},
    {PD_RECORD_AUXTRACE_ERROR, "AUXTRACE_ERROR", false, record_parse_auxtrace_error, FIELDS(
        {FIELD_CHOICE, BODY(auxtrace_error.error_type), 0, "error_type", WORDS(NULL, "instruction_trace")},
        {FIELD_NUMBER, BODY(auxtrace_error.code),       4, "code"},
        {FIELD_SPECIAL, .at = 8})},
    {PD_RECORD_THREAD_MAP, "THREAD_MAP", false, NULL, FIELDS(
        {FIELD_ARRAY,  BODY(thread_map.n), 0, NULL, .n = 24},
        {FIELD_SPECIAL, .at = 0})},
    {PD_RECORD_CPU_MAP, "CPU_MAP", false, record_parse_cpu_map, FIELDS({FIELD_SPECIAL, .at = 0})},
    {PD_RECORD_STAT_CONFIG, "STAT_CONFIG", false, NULL, FIELDS(
        {FIELD_ARRAY,  BODY(stat_config.n), 0, NULL, .n = 16},
        {FIELD_SPECIAL, .at = 0})},
    {PD_RECORD_STAT, "STAT", false, NULL, FIELDS(
        {FIELD_NUMBER, BODY(stat.id),      0,  "id"},
        {FIELD_ID,     BODY(stat.cpu),     8,  "cpu"},
        {FIELD_ID,     BODY(stat.thread),  12, "thread"},
        {FIELD_NUMBER, BODY(stat.value),   16, "value"},
        {FIELD_NUMBER, BODY(stat.enabled), 24, "enabled"},
        {FIELD_NUMBER, BODY(stat.running), 32, "running"})},
    {PD_RECORD_STAT_ROUND, "STAT_ROUND", false, NULL, FIELDS(
        {FIELD_CHOICE, BODY(stat_round.type), 0, "round", WORDS("interval", "final")},
        {FIELD_TIME,   BODY(stat_round.time), 8, "time"})},
    {PD_RECORD_EVENT_UPDATE, "EVENT_UPDATE", false, record_parse_event_update, FIELDS(
        {FIELD_NUMBER, BODY(event_update.id),          8, "id"},
        {FIELD_CHOICE, BODY(event_update.update_type), 0, "update", WORDS("unit", "scale", "name", "cpus")},
        {FIELD_SPECIAL, .at = 16})},
    {PD_RECORD_TIME_CONV, "TIME_CONV", false, record_parse_time_conv, FIELDS(
        {FIELD_NUMBER, BODY(time_conv.shift), 0,  "time_shift"},
        {FIELD_NUMBER, BODY(time_conv.mult),  8,  "time_mult"},
        {FIELD_NUMBER, BODY(time_conv.zero),  16, "time_zero"},
        {FIELD_SPECIAL, .at = 24})},
    {PD_RECORD_HEADER_FEATURE, "HEADER_FEATURE", false, NULL, FIELDS(
        {FIELD_NUMBER, BODY(header_feature.feature), 0, "feature"},
        {FIELD_REST,   BODY(header_feature.body),    8, NULL},
        {FIELD_SPECIAL, .at = 0})},
    {PD_RECORD_COMPRESSED, "COMPRESSED", false, NULL, FIELDS(
        {FIELD_REST,   BODY(compressed.frame), 0, NULL},
        {FIELD_SPECIAL, .at = 0})},
    {PD_RECORD_FINISHED_INIT, "FINISHED_INIT", false, NULL, FIELDS({})},
    {PD_RECORD_COMPRESSED2, "COMPRESSED2", false, record_parse_compressed2, FIELDS({FIELD_SPECIAL, .at = 0})},
    {PD_RECORD_BPF_METADATA, "BPF_METADATA", false, NULL, FIELDS(
        {FIELD_TEXT,   BODY(bpf_metadata.prog_name), 0,   "prog_name", .n = 256},
        {FIELD_ARRAY,  BODY(bpf_metadata.n),         256, NULL, .n = 64 + 256},
        {FIELD_SPECIAL, .at = 0})},
    {PD_RECORD_SCHEDSTAT_CPU, "SCHEDSTAT_CPU", false, NULL, FIELDS(
        SCHEDSTAT_HEAD,
        {FIELD_REST,   BODY(schedstat.counters), 16, "counters"})},
    {PD_RECORD_SCHEDSTAT_DOMAIN, "SCHEDSTAT_DOMAIN", false, NULL, FIELDS(
        SCHEDSTAT_HEAD,
        {FIELD_NUMBER, BODY(schedstat.domain),   14, "domain"},
        {FIELD_REST,   BODY(schedstat.counters), 16, "counters"})},

    {PD_RECORD_SIMPLEPERF + 1,  .name = "SIMPLEPERF_KERNEL_SYMBOL"},
    {PD_RECORD_SIMPLEPERF + 2,  .name = "SIMPLEPERF_DSO"},
    {PD_RECORD_SIMPLEPERF + 3,  .name = "SIMPLEPERF_SYMBOL"},
    {PD_RECORD_SIMPLEPERF + 4,  .name = "SIMPLEPERF_SPLIT"},
    {PD_RECORD_SIMPLEPERF + 5,  .name = "SIMPLEPERF_SPLIT_END"},
    {PD_RECORD_SIMPLEPERF + 6,  .name = "SIMPLEPERF_EVENT_ID"},
    {PD_RECORD_SIMPLEPERF + 7,  .name = "SIMPLEPERF_CALLCHAIN"},
    {PD_RECORD_SIMPLEPERF + 8,  .name = "SIMPLEPERF_UNWINDING_RESULT"},
    {PD_RECORD_SIMPLEPERF + 9,  .name = "SIMPLEPERF_TRACING_DATA"},
    {PD_RECORD_SIMPLEPERF + 10, .name = "SIMPLEPERF_DEBUG"},
};
/* clang-format on */

enum {
    KERNEL_ROWS = PD_RECORD_CALLCHAIN_DEFERRED,
    TOOL_ROWS = PD_RECORD_SCHEDSTAT_DOMAIN - PD_RECORD_USER + 1,
};

const RecordRow *record_row(uint32_t type) {
    size_t i = type;

    if (type > PD_RECORD_SIMPLEPERF)
        i = KERNEL_ROWS + TOOL_ROWS + (type - PD_RECORD_SIMPLEPERF - 1);
    else if (type >= PD_RECORD_USER)
        i = KERNEL_ROWS + (type - PD_RECORD_USER);
    else
        i = type - (size_t)1;
    return i < ARRAY_SIZE(rows) && rows[i].type == type ? &rows[i] : NULL;
}

const char *pd_record_type_name(uint32_t type) {
    const RecordRow *row = record_row(type);

    return row ? row->name : NULL;
}

static const char *record_table_without_prefix(const char *name, const char *prefix) {
    size_t n = strlen(prefix);

    return strncasecmp(name, prefix, n) == 0 ? name + n : name;
}

static int record_table_number_from_name(const char *name, uint32_t *ret) {
    char *end;
    unsigned long v;

    if (name[0] < '0' || name[0] > '9')
        return -EINVAL;
    errno = 0;
    v = strtoul(name, &end, 0);
    if (errno || *end || v > UINT32_MAX)
        return -EINVAL;
    *ret = (uint32_t)v;
    return 0;
}

/* perf prints ATTR for what its headers call HEADER_ATTR. */
static const char *record_table_bare(const char *name) {
    return record_table_without_prefix(record_table_without_prefix(name, "PERF_RECORD_"),
                                       "HEADER_");
}

int pd_record_type_from_name(const char *name, uint32_t *ret) {
    name = record_table_bare(name);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (strcasecmp(name, record_table_bare(rows[i].name)) != 0)
            continue;
        *ret = rows[i].type;
        return 0;
    }
    return record_table_number_from_name(name, ret);
}

void pd_record_type_near(const char *name, NearNames *near) {
    name = record_table_bare(name);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        near_offer(near, rows[i].name, near_distance(record_table_bare(rows[i].name), name));
}

/* The count and the bytes behind it are members of every body with an array, as in PdThreadMap. */
static void record_table_parse_array(const RecordField *field, Cursor *c, uint64_t *count) {
    *count = cursor_u64(c);
    *(Bytes *)(count + 1) = cursor_array(c, *count, field->n);
}

static void record_table_parse_field(const RecordRow *row, const RecordField *field, Cursor *c,
                                     const RecordContext *in, PdBody *ret) {
    void *member = (uint8_t *)ret + field->member;

    switch (field->kind) {
    case FIELD_TEXT:
        *(Bytes *)member = record_parse_text(c, field->n ? field->n : SIZE_MAX);
        break;
    case FIELD_BYTES:
        *(const uint8_t **)member = cursor_take(c, field->n);
        break;
    case FIELD_REST:
        *(Bytes *)member = cursor_bytes(c, cursor_left(c));
        break;
    case FIELD_ARRAY:
        record_table_parse_array(field, c, member);
        break;
    default:
        if (row->parse)
            row->parse(c, in, ret);
    }
}

static void record_table_parse_fields(const RecordRow *row, Cursor *c, const RecordContext *in,
                                      PdBody *ret) {
    const uint8_t *body = c->at;
    size_t size = cursor_left(c);

    for (const RecordField *f = row->fields; f->kind != FIELD_END && !c->failed; f++) {
        uint8_t *member = (uint8_t *)ret + f->member;

        if (f->kind == FIELD_MISC) {
            if (f->size > 0)
                *(bool *)member = in->record->misc & f->at;
        } else if ((size_t)f->at + (f->kind <= FIELD_FLAGS ? f->size : 0) > size)
            cursor_fail(c);
        else if (f->kind <= FIELD_FLAGS)
            store_uint(member, f->size, load_uint(body + f->at, f->size, c->swap), false);
        else {
            c->at = body + f->at;
            record_table_parse_field(row, f, c, in, ret);
        }
    }
}

static void record_table_append_text(Buffer *out, Bytes text, size_t max) {
    size_t n = MIN(text.size, max);

    buffer_append(out, text.data, n);
    buffer_zero(out, ALIGN8(n + 1) - n);
}

/* Stores a number at its offset; numbers may come in any order. */
static void record_table_append_number(Buffer *out, size_t start, const RecordField *field,
                                       const void *member) {
    size_t at = start + field->at, end = at + field->size;

    if (out->size < end)
        buffer_zero(out, end - out->size);
    if (buffer_error(out) == 0)
        memcpy(out->data + at, member, field->size);
}

void record_append_body(Buffer *out, uint32_t type, const void *body, size_t text_max) {
    size_t start = out->size;

    for (const RecordField *f = record_row(type)->fields; f->kind != FIELD_END; f++) {
        const void *member = (const uint8_t *)body + f->member;

        if (f->kind == FIELD_MISC || f->kind == FIELD_SPECIAL)
            continue;
        if (f->kind == FIELD_TEXT)
            record_table_append_text(out, *(const Bytes *)member, text_max);
        else
            record_table_append_number(out, start, f, member);
        if (f->kind == FIELD_ARRAY) {
            const Bytes *entries = (const Bytes *)((const uint64_t *)member + 1);

            buffer_append(out, entries->data, entries->size);
        }
    }
}

/* Of all bodies but that of a SAMPLE, which is much larger. */
enum { PLAIN_BODY_MAX = sizeof(PdMmap) };
static_assert(sizeof(PdReadRecord) <= PLAIN_BODY_MAX && sizeof(PdEventUpdate) <= PLAIN_BODY_MAX &&
                  sizeof(PdAuxtraceError) <= PLAIN_BODY_MAX,
              "the other bodies are smaller than these");

int record_parse_into(const RecordRow *row, const PdRecord *record, const PdEvent *event,
                      PdBody *ret) {
    RecordContext context = {.record = record, .event = event};
    Cursor c;

    if (!row || !row->fields)
        return -EOPNOTSUPP;
    if (record->size < PD_RECORD_HEADER_SIZE)
        return -EBADMSG;
    c = pd_record_cursor(record);
    if (event && record->type < PD_RECORD_USER && record->type != PD_RECORD_SAMPLE) {
        if (event->trailer_size > cursor_left(&c))
            return -EBADMSG;
        c.end -= event->trailer_size;
    }
    if (record->type != PD_RECORD_SAMPLE)
        memset(ret, 0, PLAIN_BODY_MAX);
    record_table_parse_fields(row, &c, &context, ret);
    return c.failed ? -EBADMSG : 0;
}

int pd_record_parse(const PdRecord *record, const PdEvent *event, PdBody *ret) {
    PdBody body;
    int r;

    r = record_parse_into(record_row(record->type), record, event, &body);
    if (r < 0)
        return r;
    *ret = body;
    return 0;
}
