/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record/record-row.h"

/*
 * Bodies of the records that the kernel writes (and of those that tools write in its format), as
 * defined in include/uapi/linux/perf_event.h. Strings end at their NUL or at the trailer; a count
 * is limited to what the body can hold.
 */

enum { BUILD_ID_SIZE_MAX = 20, BPF_TAG_SIZE = 8, NAMESPACE_LINK_SIZE = 16 };

static PdU64s record_kernel_u64s(Cursor *c, uint64_t n) {
    Bytes bytes = cursor_array(c, n, 8);

    return (PdU64s){.data = bytes.data, .n = n, .swap = c->swap};
}

void record_parse_nothing(Cursor *c, const RecordContext *in, PdBody *ret) {
}

void record_parse_mmap(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdMmap m = {};

    m.pid = cursor_u32(c);
    m.tid = cursor_u32(c);
    m.start = cursor_u64(c);
    m.length = cursor_u64(c);
    m.pgoff = cursor_u64(c);
    m.data = in->record->misc & PD_MISC_MMAP_DATA;
    m.filename = cursor_string(c);
    ret->mmap = m;
}

/*
 * The 24 bytes are either a build id or the identity of the file on its host. The flag alone does
 * not decide: the kernel forgets to clear it when it writes one mapping first to an event with
 * attr.build_id and then to one without (when two recorders run). So the bytes must also look like
 * a build id: a valid size and zeroes around it. Among the usual sizes, 8 is also the major number
 * of disks; a minor number after it is small, unlike a hash.
 */
static bool record_kernel_is_build_id(const uint8_t *p) {
    if (p[0] == 0 || p[0] > BUILD_ID_SIZE_MAX || p[1] || p[2] || p[3])
        return false;
    for (size_t i = 4 + p[0]; i < 4 + BUILD_ID_SIZE_MAX; i++)
        if (p[i])
            return false;
    return p[0] == 16 || p[0] == 20 || p[5] || p[6] || p[7];
}

static void record_kernel_parse_identity(Cursor *c, bool flag, PdMmap *m) {
    if (cursor_left(c) < 4 + BUILD_ID_SIZE_MAX) {
        cursor_fail(c);
        return;
    }
    if (!flag || !record_kernel_is_build_id(c->at)) {
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

void record_parse_mmap2(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdMmap m = {};

    m.pid = cursor_u32(c);
    m.tid = cursor_u32(c);
    m.start = cursor_u64(c);
    m.length = cursor_u64(c);
    m.pgoff = cursor_u64(c);
    record_kernel_parse_identity(c, in->record->misc & PD_MISC_MMAP_BUILD_ID, &m);
    m.prot = cursor_u32(c);
    m.flags = cursor_u32(c);
    m.data = in->record->misc & PD_MISC_MMAP_DATA;
    m.filename = cursor_string(c);
    ret->mmap = m;
}

void record_parse_comm(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdComm comm = {.exec = in->record->misc & PD_MISC_COMM_EXEC};

    comm.pid = cursor_u32(c);
    comm.tid = cursor_u32(c);
    comm.comm = cursor_string(c);
    ret->comm = comm;
}

void record_parse_task(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdTask t = {};

    t.pid = cursor_u32(c);
    t.ppid = cursor_u32(c);
    t.tid = cursor_u32(c);
    t.ptid = cursor_u32(c);
    t.time = cursor_u64(c);
    ret->task = t;
}

void record_parse_lost(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdLost l = {};

    l.id = cursor_u64(c);
    l.lost = cursor_u64(c);
    ret->lost = l;
}

void record_parse_lost_samples(Cursor *c, const RecordContext *in, PdBody *ret) {
    ret->lost = (PdLost){.lost = cursor_u64(c)};
}

void record_parse_throttle(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdThrottle t = {};

    t.time = cursor_u64(c);
    t.id = cursor_u64(c);
    t.stream_id = cursor_u64(c);
    ret->throttle = t;
}

void record_parse_read(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdReadRecord r = {};

    r.pid = cursor_u32(c);
    r.tid = cursor_u32(c);
    if (in->event)
        pd_read_parse(c, in->event->attr.read_format, &r.read);
    else
        cursor_fail(c);
    ret->read = r;
}

void record_parse_sample(Cursor *c, const RecordContext *in, PdBody *ret) {
    if (!in->event || sample_parse_into(in->record, in->event, &ret->sample) < 0)
        cursor_fail(c);
}

void record_parse_aux(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdAux a = {};

    a.offset = cursor_u64(c);
    a.size = cursor_u64(c);
    a.flags = cursor_u64(c);
    ret->aux = a;
}

void record_parse_pid_tid(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdPidTid p = {};

    p.pid = cursor_u32(c);
    p.tid = cursor_u32(c);
    ret->pid_tid = p;
}

void record_parse_namespaces(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdNamespaces n = {};

    n.pid = cursor_u32(c);
    n.tid = cursor_u32(c);
    n.n = cursor_u64(c);
    n.links = cursor_array(c, n.n, NAMESPACE_LINK_SIZE);
    ret->namespaces = n;
}

void record_parse_ksymbol(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdKsymbol k = {};

    k.addr = cursor_u64(c);
    k.length = cursor_u32(c);
    k.ksym_type = cursor_u16(c);
    k.flags = cursor_u16(c);
    k.name = cursor_string(c);
    ret->ksymbol = k;
}

void record_parse_bpf_event(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdBpfEvent b = {};

    b.bpf_type = cursor_u16(c);
    b.flags = cursor_u16(c);
    b.id = cursor_u32(c);
    b.tag = cursor_take(c, BPF_TAG_SIZE);
    ret->bpf_event = b;
}

void record_parse_cgroup(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdCgroup g = {};

    g.id = cursor_u64(c);
    g.path = cursor_string(c);
    ret->cgroup = g;
}

void record_parse_text_poke(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdTextPoke t = {};
    uint16_t old_size, new_size;

    t.addr = cursor_u64(c);
    old_size = cursor_u16(c);
    new_size = cursor_u16(c);
    t.old_bytes = cursor_bytes(c, old_size);
    t.new_bytes = cursor_bytes(c, new_size);
    ret->text_poke = t;
}

void record_parse_hw_id(Cursor *c, const RecordContext *in, PdBody *ret) {
    ret->hw_id = cursor_u64(c);
}

void record_parse_callchain_deferred(Cursor *c, const RecordContext *in, PdBody *ret) {
    PdCallchainDeferred d = {};

    d.cookie = cursor_u64(c);
    d.chain = record_kernel_u64s(c, cursor_u64(c));
    ret->callchain_deferred = d;
}
