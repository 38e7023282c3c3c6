/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/mman.h>

#include "fuzz.h"
#include "process/history/history.h"

/*
 * A History under a random life: side-band, sweeps, samples of several recordings, baselines and
 * build ids in any order, with few pids and small times so that things meet. Input: steps of a byte
 * that says what, followed by what it needs. Whatever comes, memory stays below its limit and what
 * is to be written is a run of whole records that can be parsed, none below the floor by mistake.
 */

enum { RECORDINGS = 3, LIMIT_BYTES = 96 << 10, RECORD_MAX = 256, ID = 5 };

#define SAMPLE_TYPE (PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_CPU)

typedef struct Life {
    Cursor in;
    PdEvents *events;
    PdEvent *event;
    History *history;
    Emission *recordings[RECORDINGS];
    uint64_t now;
} Life;

static uint32_t pid_of(Life *l) {
    return cursor_u8(&l->in) % 12;
}

/* Mostly close to now, on either side. */
static uint64_t time_of(Life *l) {
    uint64_t t = l->now + cursor_u8(&l->in);

    return t > 64 ? t - 64 : 1;
}

static void check(bool holds) {
    if (!holds)
        abort();
}

static void check_written(Life *l, Buffer *records) {
    for (size_t at = 0; at < records->size;) {
        PdRecord record = pd_record_at(records->data + at, false);
        PdBody body;
        PdStamp stamp;

        check(records->size - at >= PD_RECORD_HEADER_SIZE);
        check(record.size <= records->size - at && record.size % 8 == 0);
        check(pd_events_stamp(l->events, &record, &stamp) == 0);
        check(stamp.id == ID && stamp.time > 0 && record.type != PD_RECORD_EXIT);
        check(pd_record_parse(&record, l->event, &body) == 0);
        at += record.size;
    }
    buffer_clear(records);
}

static void put_string(Life *l, Buffer *out) {
    size_t n = cursor_u8(&l->in) % 16;

    for (size_t i = 0; i < n; i++)
        buffer_append(out, (const uint8_t[]){cursor_u8(&l->in)}, 1);
    buffer_zero(out, ALIGN8(n + 1) - n);
}

static void put_task(Life *l, Buffer *out) {
    uint32_t pid = pid_of(l), tid = pid_of(l), ppid = pid_of(l), ptid = pid_of(l);

    buffer_u32(out, pid, false);
    buffer_u32(out, tid % 2 ? pid : ppid, false);
    buffer_u32(out, tid % 3 ? pid : tid, false);
    buffer_u32(out, ptid, false);
    buffer_u64(out, 0, false);
}

static void put_mmap(Life *l, Buffer *out) {
    buffer_u32(out, pid_of(l), false);
    buffer_u32(out, pid_of(l), false);
    buffer_u64(out, (uint64_t)cursor_u8(&l->in) << 12, false);
    buffer_u64(out, (uint64_t)cursor_u8(&l->in) << 11, false);
    buffer_u64(out, cursor_u8(&l->in), false);
    buffer_u64(out, cursor_u8(&l->in) % 4, false);
    buffer_u64(out, cursor_u8(&l->in) % 4, false);
    buffer_u64(out, 0, false);
    buffer_u32(out, PROT_READ | PROT_EXEC, false);
    buffer_u32(out, MAP_PRIVATE, false);
    buffer_append(out, "/", 1);
    buffer_zero(out, 7);
}

static void put_body(Life *l, uint32_t type, Buffer *out) {
    switch (type) {
    case PD_RECORD_FORK:
    case PD_RECORD_EXIT:
        put_task(l, out);
        break;
    case PD_RECORD_COMM:
        buffer_u32(out, pid_of(l), false);
        buffer_u32(out, pid_of(l), false);
        put_string(l, out);
        break;
    case PD_RECORD_MMAP2:
        put_mmap(l, out);
        break;
    default: {
        size_t n = cursor_u8(&l->in) % 64 / 8 * 8;
        const uint8_t *bytes = cursor_take(&l->in, n);

        if (bytes)
            buffer_append(out, bytes, n);
    }
    }
}

static void feed(Life *l) {
    static const uint32_t types[] = {PD_RECORD_FORK,       PD_RECORD_EXIT,    PD_RECORD_COMM,
                                     PD_RECORD_MMAP2,      PD_RECORD_FORK,    PD_RECORD_EXIT,
                                     PD_RECORD_COMM,       PD_RECORD_MMAP2,   PD_RECORD_LOST,
                                     PD_RECORD_NAMESPACES, PD_RECORD_KSYMBOL, PD_RECORD_BPF_EVENT,
                                     PD_RECORD_CGROUP};
    _cleanup_(buffer_done) Buffer bytes = {};
    uint8_t kind = cursor_u8(&l->in);
    uint32_t type = types[kind % ARRAY_SIZE(types)];
    PdRecord record;

    buffer_u32(&bytes, type, false);
    buffer_u16(&bytes, kind & 0x40 ? 1 << 13 : 0, false);
    buffer_u16(&bytes, 0, false);
    put_body(l, type, &bytes);
    if (kind & 0x80 && bytes.size > 16)
        bytes.size -= 8;
    buffer_u64(&bytes, 0, false);
    buffer_u64(&bytes, time_of(l), false);
    buffer_u64(&bytes, 0, false);
    buffer_u64(&bytes, ID + 1, false);
    if (buffer_error(&bytes) < 0)
        return;
    store_u16(bytes.data + 6, (uint16_t)bytes.size, false);
    record = pd_record_at(bytes.data, false);
    (void)history_feed(l->history, &record, l->event);
}

static void install(Life *l) {
    static const char *const names[] = {"a", "b", ""};
    BaselineThread threads[4];
    PdMmap maps[3] = {};
    Baseline b = {.pid = pid_of(l), .ppid = pid_of(l), .threads = threads, .maps = maps};

    b.begin_ns = time_of(l);
    b.end_ns = b.begin_ns + cursor_u8(&l->in) % 8;
    b.n_threads = 1 + cursor_u8(&l->in) % ARRAY_SIZE(threads);
    b.n_maps = cursor_u8(&l->in) % (ARRAY_SIZE(maps) + 1);
    b.force = cursor_u8(&l->in) & 1;
    for (size_t i = 0; i < b.n_threads; i++)
        threads[i] = (BaselineThread){.tid = i ? pid_of(l) : b.pid,
                                      .comm = names[cursor_u8(&l->in) % ARRAY_SIZE(names)]};
    for (size_t i = 0; i < b.n_maps; i++)
        maps[i] = (PdMmap){.start = (uint64_t)cursor_u8(&l->in) << 12,
                           .length = (uint64_t)cursor_u8(&l->in) << 10,
                           .inode = cursor_u8(&l->in) % 4,
                           .prot = PROT_EXEC,
                           .filename = {.data = (const uint8_t *)"/x", .size = 2}};
    (void)history_install(l->history, &b);
}

static void install_kernel(Life *l) {
    size_t n = cursor_u8(&l->in);
    Bytes records = cursor_bytes(&l->in, MIN(n, cursor_left(&l->in)));

    (void)history_install_kernel(l->history, records);
}

static void answer(Life *l) {
    static const uint8_t id[20] = {1};
    HistoryWanted wanted;

    uint64_t image;

    if (history_next_wanted(l->history, &wanted) <= 0)
        return;
    image = wanted.image + (cursor_u8(&l->in) & 1);
    if (wanted.checks)
        history_set_checked(l->history, image, cursor_u8(&l->in) % 3, time_of(l), &wanted);
    else
        history_set_build_id(l->history, image, (Bytes){.data = id, .size = cursor_u8(&l->in) % 24},
                             1);
}

static void rotate(Life *l, Emission **at) {
    PdTrailer trailer = {.sample_type = SAMPLE_TYPE, .id = ID};
    _cleanup_(buffer_done) Buffer head = {};

    *at = emission_free(*at);
    if (cursor_u8(&l->in) % 4 == 0 || emission_new(l->history, &trailer, at) < 0)
        return;
    (void)emission_preamble(*at, &head);
    check_written(l, &head);
}

static void step(Life *l) {
    uint8_t what = cursor_u8(&l->in);
    Emission **at = &l->recordings[(what >> 4) % RECORDINGS];
    uint32_t pid;

    switch (what % 16) {
    case 0:
        (void)history_settle(l->history, l->now);
        history_complete(l->history, l->now);
        l->now += 1 + cursor_u8(&l->in);
        break;
    case 1:
        (void)history_settle(l->history, time_of(l));
        break;
    case 2:
        install(l);
        break;
    case 3:
        rotate(l, at);
        break;
    case 4:
        answer(l);
        break;
    case 5:
        (void)history_sweep_missing(l->history, time_of(l));
        (void)history_next_unknown(l->history, &pid);
        break;
    case 6:
        install_kernel(l);
        break;
    case 7:
        /* Long enough for ended processes to be forgotten. */
        l->now += 3000000000;
        break;
    case 8:
    case 9:
    case 10:
        pid = pid_of(l);
        if (*at)
            (void)emission_need(*at, pid, what & 1 ? pid : pid_of(l), time_of(l), pid);
        break;
    default:
        feed(l);
    }
    if (*at)
        check_written(l, emission_pending(*at));
    check(history_counts(l->history).memory_bytes <= LIMIT_BYTES + 65536);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    PdAttr attr = {
        .type = 1, .size = 128, .sample_type = SAMPLE_TYPE, .flags = PD_ATTR_SAMPLE_ID_ALL};
    ProcessLimits limits = {.memory_bytes = LIMIT_BYTES};
    Life l = {.in = cursor_of(data, size, false), .now = 1000};
    static const uint64_t id = ID;

    if (pd_events_new(&l.events) == 0 &&
        pd_events_add(l.events, &attr, (Bytes){}, &id, 1, &l.event) == 0 &&
        history_new(&limits, &l.history) == 0)
        while (!l.in.failed && cursor_left(&l.in) > 0)
            step(&l);
    for (size_t i = 0; i < RECORDINGS; i++)
        emission_free(l.recordings[i]);
    history_free(l.history);
    pd_events_free(l.events);
    return 0;
}
