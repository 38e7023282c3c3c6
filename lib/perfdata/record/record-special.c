/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record/record-row.h"

/*
 * The parts of bodies that the fields of a row cannot say. The kernel's records are defined in
 * include/uapi/linux/perf_event.h, those of perf itself (types from 64) in tools/lib/perf's
 * event.h. Where perf has extended a record over the years, the size determines its form.
 */

enum {
    BUILD_ID_SIZE_MAX = 20,
    BUILD_ID_AREA_SIZE = 24,
    ID_INDEX_ENTRY_SIZE = 32,
    ID_INDEX_MACHINE_SIZE = 16,
    AUXTRACE_MESSAGE_SIZE = 64,
};

/*
 * The 24 bytes are either a build id or the identity of the file on its host. The flag alone does
 * not decide: the kernel forgets to clear it when it writes one mapping first to an event with
 * attr.build_id and then to one without (when two recorders run). So the bytes must also look like
 * a build id: a valid size and zeroes around it. Among the usual sizes, 8 is also the major number
 * of disks; a minor number after it is small, unlike a hash.
 */
static bool record_special_is_build_id(const uint8_t *p) {
    if (p[0] == 0 || p[0] > BUILD_ID_SIZE_MAX || p[1] || p[2] || p[3])
        return false;
    for (size_t i = 4 + p[0]; i < 4 + BUILD_ID_SIZE_MAX; i++)
        if (p[i])
            return false;
    return p[0] == 16 || p[0] == 20 || p[5] || p[6] || p[7];
}

void record_parse_mmap2(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdMmap *m = &ret->mmap;

    if (cursor_left(c) < 4 + BUILD_ID_SIZE_MAX) {
        cursor_fail(c);
        return;
    }
    if (!(in->record->misc & PD_MISC_MMAP_BUILD_ID) || !record_special_is_build_id(c->at)) {
        m->major = cursor_u32(c);
        m->minor = cursor_u32(c);
        m->inode = cursor_u64(c);
        m->generation = cursor_u64(c);
        return;
    }
    m->build_id_size = cursor_u8(c);
    cursor_take(c, 3);
    m->build_id = cursor_take(c, BUILD_ID_SIZE_MAX);
}

void record_parse_read(Cursor *c, const RecordContext *in, PdBody *ret) {
    if (in->event)
        pd_read_parse(c, in->event->attr.read_format, &ret->read.read);
    else
        cursor_fail(c);
}

void record_parse_sample(Cursor *c, const RecordContext *in, PdBody *ret) {
    if (!in->event || sample_parse_into(in->record, in->event, &ret->sample) < 0)
        cursor_fail(c);
}

void record_parse_text_poke(Cursor *c, const RecordContext *in, PdBody *ret) {
    uint16_t old_size = cursor_u16(c), new_size = cursor_u16(c);

    ret->text_poke.old_bytes = cursor_bytes(c, old_size);
    ret->text_poke.new_bytes = cursor_bytes(c, new_size);
}

void record_parse_callchain_deferred(Cursor *c, const RecordContext *in, PdBody *ret) {
    uint64_t n = cursor_u64(c);
    Bytes bytes = cursor_array(c, n, 8);

    ret->callchain_deferred.chain = (PdU64s){.data = bytes.data, .n = n, .swap = c->swap};
}

void record_parse_header_attr(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdHeaderAttr *h = &ret->header_attr;
    Cursor peek = *c;
    uint32_t size;

    cursor_u32(&peek);
    size = cursor_u32(&peek);
    /* Early writers left attr.size zero and meant the first published version. */
    h->attr = cursor_bytes(c, size ? size : PD_ATTR_SIZE_MIN);
    if (h->attr.size < PD_ATTR_SIZE_MIN)
        cursor_fail(c);
    h->n_ids = cursor_left(c) / 8;
    h->ids = cursor_array(c, h->n_ids, 8);
}

void record_parse_build_id(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdBuildId *b = &ret->build_id;

    b->misc = in->record->misc;
    b->size = BUILD_ID_SIZE_MAX;
    b->build_id = cursor_take(c, BUILD_ID_AREA_SIZE);
    if (b->build_id && b->misc & PD_MISC_BUILD_ID_SIZE)
        b->size = b->build_id[BUILD_ID_SIZE_MAX];
    if (b->size > BUILD_ID_SIZE_MAX)
        cursor_fail(c);
}

void record_parse_id_index(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdIdIndex *x = &ret->id_index;

    x->n = cursor_u64(c);
    x->entries = cursor_array(c, x->n, ID_INDEX_ENTRY_SIZE);
    if (x->n > 0 && cursor_left(c) / ID_INDEX_MACHINE_SIZE >= x->n)
        x->machines = cursor_array(c, x->n, ID_INDEX_MACHINE_SIZE);
}

void record_parse_auxtrace_info(Cursor *c, const RecordContext *in, PdBody *ret) {
    ret->auxtrace_info.priv = cursor_array(c, cursor_left(c) / 8, 8);
}

/* fmt 0 has no time; fmt 2 and newer have the guest if they are long enough. */
void record_parse_auxtrace_error(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdAuxtraceError *e = &ret->auxtrace_error;

    e->cpu = cursor_u32(c);
    e->pid = cursor_u32(c);
    e->tid = cursor_u32(c);
    e->fmt = cursor_u32(c);
    e->ip = cursor_u64(c);
    if (e->fmt > 0)
        e->time = cursor_u64(c);
    e->message = record_parse_text(c, AUXTRACE_MESSAGE_SIZE);
    if (e->fmt >= 2 && cursor_left(c) >= 8) {
        e->machine_pid = cursor_u32(c);
        e->vcpu = cursor_u32(c);
    }
}

/* struct perf_record_cpu_map_data, which is packed: the longs of a mask with 8-byte longs begin at
 * offset 10, those with 4-byte longs at offset 6. */
static void record_special_parse_cpus(Cursor *c, PdCpuMap *m) {
    m->kind = cursor_u16(c);
    switch (m->kind) {
    case PD_CPU_MAP_LIST:
        m->n = cursor_u16(c);
        m->data = cursor_array(c, m->n, 2);
        break;
    case PD_CPU_MAP_MASK:
        m->n = cursor_u16(c);
        m->long_size = cursor_u16(c);
        if (m->long_size == 8)
            cursor_u32(c);
        else if (m->long_size != 4)
            cursor_fail(c);
        m->data = cursor_array(c, m->n, m->long_size == 8 ? 8 : 4);
        break;
    case PD_CPU_MAP_RANGE:
        m->any_cpu = cursor_u8(c);
        cursor_u8(c);
        m->start = cursor_u16(c);
        m->end = cursor_u16(c);
        break;
    default:
        cursor_fail(c);
    }
}

void record_parse_cpu_map(Cursor *c, const RecordContext *in, PdBody *ret) {
    record_special_parse_cpus(c, &ret->cpu_map);
}

void record_parse_event_update(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdEventUpdate *u = &ret->event_update;
    uint64_t bits;

    switch (u->update_type) {
    case PD_EVENT_UPDATE_SCALE:
        bits = cursor_u64(c);
        memcpy(&u->scale, &bits, sizeof(u->scale));
        break;
    case PD_EVENT_UPDATE_CPUS:
        record_special_parse_cpus(c, &u->cpus);
        break;
    default:
        u->text = cursor_string(c);
    }
}

void record_parse_time_conv(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdTimeConv *t = &ret->time_conv;

    t->has_cycles = cursor_left(c) >= 18;
    if (!t->has_cycles)
        return;
    t->cycles = cursor_u64(c);
    t->mask = cursor_u64(c);
    t->cap_user_time_zero = cursor_u8(c);
    t->cap_user_time_short = cursor_u8(c);
}

void record_parse_compressed2(Cursor *c, const RecordContext *in, PdBody *ret) {
    uint64_t size = cursor_u64(c);

    /* perf 6.16 to 6.18 may write the total size of data that is spread over several records. */
    ret->compressed.frame = cursor_bytes(c, MIN(size, (uint64_t)cursor_left(c)));
}
