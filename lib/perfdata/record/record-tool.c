/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record/record-row.h"

/*
 * Bodies of the records that perf itself writes (types from 64), as defined in tools/lib/perf's
 * event.h. They have no trailer, so the body is everything after the header. Where perf has
 * extended a record over the years, the size determines its form.
 */

enum {
    BUILD_ID_SIZE_MAX = 20,
    BUILD_ID_AREA_SIZE = 24,
    EVENT_TYPE_NAME_SIZE = 64,
    ID_INDEX_ENTRY_SIZE = 32,
    ID_INDEX_MACHINE_SIZE = 16,
    AUXTRACE_MESSAGE_SIZE = 64,
    THREAD_MAP_ENTRY_SIZE = 24,
    STAT_CONFIG_ENTRY_SIZE = 16,
    BPF_METADATA_NAME_SIZE = 256,
    BPF_METADATA_ENTRY_SIZE = 64 + 256,
};

/* A string in a field of fixed size, whose end old writers may have cut off. */
static Bytes record_tool_string_of_at_most(Cursor *c, size_t n) {
    Cursor field = *c;

    if (cursor_left(c) > n)
        field.end = field.at + n;
    cursor_take(c, cursor_left(&field));
    return cursor_string(&field);
}

void record_parse_header_attr(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdHeaderAttr h = {};
    Cursor peek = *c;
    uint32_t size;

    cursor_u32(&peek);
    size = cursor_u32(&peek);
    /* Early writers left attr.size zero and meant the first published version. */
    h.attr = cursor_bytes(c, size ? size : PD_ATTR_SIZE_MIN);
    if (h.attr.size < PD_ATTR_SIZE_MIN)
        cursor_fail(c);
    h.n_ids = cursor_left(c) / 8;
    h.ids = cursor_array(c, h.n_ids, 8);
    ret->header_attr = h;
}

void record_parse_event_type(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdEventType t = {};

    t.id = cursor_u64(c);
    t.name = record_tool_string_of_at_most(c, EVENT_TYPE_NAME_SIZE);
    ret->event_type = t;
}

void record_parse_tracing_data(Cursor *c, const RecordContext *in, PdBody *ret) {
    ret->tracing_data_size = cursor_u32(c);
}

void record_parse_build_id(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdBuildId b = {.misc = in->record->misc, .size = BUILD_ID_SIZE_MAX};

    b.pid = cursor_u32(c);
    b.build_id = cursor_take(c, BUILD_ID_AREA_SIZE);
    if (b.build_id && b.misc & PD_MISC_BUILD_ID_SIZE)
        b.size = b.build_id[BUILD_ID_SIZE_MAX];
    if (b.size > BUILD_ID_SIZE_MAX)
        cursor_fail(c);
    b.filename = cursor_string(c);
    ret->build_id = b;
}

void record_parse_id_index(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdIdIndex x = {};

    x.n = cursor_u64(c);
    x.entries = cursor_array(c, x.n, ID_INDEX_ENTRY_SIZE);
    if (x.n > 0 && cursor_left(c) / ID_INDEX_MACHINE_SIZE >= x.n)
        x.machines = cursor_array(c, x.n, ID_INDEX_MACHINE_SIZE);
    ret->id_index = x;
}

void record_parse_auxtrace_info(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdAuxtraceInfo a = {};

    a.auxtrace_type = cursor_u32(c);
    cursor_u32(c);
    a.priv = cursor_array(c, cursor_left(c) / 8, 8);
    ret->auxtrace_info = a;
}

void record_parse_auxtrace(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdAuxtrace a = {};

    a.size = cursor_u64(c);
    a.offset = cursor_u64(c);
    a.reference = cursor_u64(c);
    a.idx = cursor_u32(c);
    a.tid = cursor_u32(c);
    a.cpu = cursor_u32(c);
    ret->auxtrace = a;
}

/* fmt 0 has no time; fmt 2 and newer have the guest if they are long enough. */
void record_parse_auxtrace_error(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdAuxtraceError e = {};

    e.error_type = cursor_u32(c);
    e.code = cursor_u32(c);
    e.cpu = cursor_u32(c);
    e.pid = cursor_u32(c);
    e.tid = cursor_u32(c);
    e.fmt = cursor_u32(c);
    e.ip = cursor_u64(c);
    if (e.fmt > 0)
        e.time = cursor_u64(c);
    e.message = record_tool_string_of_at_most(c, AUXTRACE_MESSAGE_SIZE);
    if (e.fmt >= 2 && cursor_left(c) >= 8) {
        e.machine_pid = cursor_u32(c);
        e.vcpu = cursor_u32(c);
    }
    ret->auxtrace_error = e;
}

void record_parse_thread_map(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdThreadMap m = {};

    m.n = cursor_u64(c);
    m.entries = cursor_array(c, m.n, THREAD_MAP_ENTRY_SIZE);
    ret->thread_map = m;
}

/* struct perf_record_cpu_map_data, which is packed: the longs of a mask with 8-byte longs begin at
 * offset 10, those with 4-byte longs at offset 6. */
static void record_tool_parse_cpu_map_data(Cursor *c, PdCpuMap *ret) {
    PdCpuMap m = {.kind = cursor_u16(c)};

    switch (m.kind) {
    case PD_CPU_MAP_LIST:
        m.n = cursor_u16(c);
        m.data = cursor_array(c, m.n, 2);
        break;
    case PD_CPU_MAP_MASK:
        m.n = cursor_u16(c);
        m.long_size = cursor_u16(c);
        if (m.long_size == 8)
            cursor_u32(c);
        else if (m.long_size != 4)
            cursor_fail(c);
        m.data = cursor_array(c, m.n, m.long_size == 8 ? 8 : 4);
        break;
    case PD_CPU_MAP_RANGE:
        m.any_cpu = cursor_u8(c);
        cursor_u8(c);
        m.start = cursor_u16(c);
        m.end = cursor_u16(c);
        break;
    default:
        cursor_fail(c);
    }
    *ret = m;
}

void record_parse_cpu_map(Cursor *c, const RecordContext *in, PdBody *ret) {
    record_tool_parse_cpu_map_data(c, &ret->cpu_map);
}

void record_parse_stat_config(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdStatConfig s = {};

    s.n = cursor_u64(c);
    s.entries = cursor_array(c, s.n, STAT_CONFIG_ENTRY_SIZE);
    ret->stat_config = s;
}

void record_parse_stat(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdStat s = {};

    s.id = cursor_u64(c);
    s.cpu = cursor_u32(c);
    s.thread = cursor_u32(c);
    s.value = cursor_u64(c);
    s.enabled = cursor_u64(c);
    s.running = cursor_u64(c);
    ret->stat = s;
}

void record_parse_stat_round(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdStatRound s = {};

    s.type = cursor_u64(c);
    s.time = cursor_u64(c);
    ret->stat_round = s;
}

void record_parse_event_update(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdEventUpdate u = {};
    uint64_t bits;

    u.update_type = cursor_u64(c);
    u.id = cursor_u64(c);
    switch (u.update_type) {
    case PD_EVENT_UPDATE_SCALE:
        bits = cursor_u64(c);
        memcpy(&u.scale, &bits, sizeof(u.scale));
        break;
    case PD_EVENT_UPDATE_CPUS:
        record_tool_parse_cpu_map_data(c, &u.cpus);
        break;
    default:
        u.text = cursor_string(c);
    }
    ret->event_update = u;
}

void record_parse_time_conv(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdTimeConv t = {};

    t.shift = cursor_u64(c);
    t.mult = cursor_u64(c);
    t.zero = cursor_u64(c);
    t.has_cycles = cursor_left(c) >= 18;
    if (t.has_cycles) {
        t.cycles = cursor_u64(c);
        t.mask = cursor_u64(c);
        t.cap_user_time_zero = cursor_u8(c);
        t.cap_user_time_short = cursor_u8(c);
    }
    ret->time_conv = t;
}

void record_parse_header_feature(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdHeaderFeature f = {};

    f.feature = cursor_u64(c);
    f.body = cursor_bytes(c, cursor_left(c));
    ret->header_feature = f;
}

void record_parse_compressed(Cursor *c, const RecordContext *in, PdBody *ret) {
    ret->compressed = (PdCompressed){.frame = cursor_bytes(c, cursor_left(c))};
}

void record_parse_compressed2(Cursor *c, const RecordContext *in, PdBody *ret) {
    uint64_t size = cursor_u64(c);

    /* perf 6.16 to 6.18 may write the total size of data that is spread over several records. */
    ret->compressed = (PdCompressed){.frame = cursor_bytes(c, MIN(size, (uint64_t)cursor_left(c)))};
}

void record_parse_bpf_metadata(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdBpfMetadata b = {};

    b.prog_name = record_tool_string_of_at_most(c, BPF_METADATA_NAME_SIZE);
    b.n = cursor_u64(c);
    b.entries = cursor_array(c, b.n, BPF_METADATA_ENTRY_SIZE);
    ret->bpf_metadata = b;
}

void record_parse_schedstat(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdSchedstat s = {};

    s.timestamp = cursor_u64(c);
    s.cpu = cursor_u32(c);
    s.version = cursor_u16(c);
    s.domain = cursor_u16(c);
    s.counters = cursor_bytes(c, cursor_left(c));
    ret->schedstat = s;
}
