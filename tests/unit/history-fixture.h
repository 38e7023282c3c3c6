/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A History, a recording of it, and generated side-band. The records for the recording are compared
 * as text, one line for each: its stamp, its type, and its content.
 */

#include <sys/mman.h>

#include "make-record.h"
#include "process/history/history.h"
#include "test.h"
#include "util/text.h"

#define SAMPLE_TYPE (PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_CPU)

enum { ID = 77 };

#define SECOND 1000000000ULL

typedef struct Fixture {
    PdEvents *events;
    PdEvent *event;
    History *history;
    Emission *emission;
    Buffer text;
} Fixture;

static inline int emission(Fixture *f, Emission **ret) {
    PdTrailer trailer = {.sample_type = SAMPLE_TYPE, .id = ID};

    return emission_new(f->history, &trailer, ret);
}

static inline Fixture fixture_with(const ProcessLimits *limits) {
    PdAttr attr = {.type = 1,
                   .config = 9,
                   .size = 128,
                   .sample_type = SAMPLE_TYPE,
                   .flags = PD_ATTR_SAMPLE_ID_ALL};
    uint64_t id = ID;
    Fixture f = {};

    if (pd_events_new(&f.events) < 0 ||
        pd_events_add(f.events, &attr, (Bytes){}, &id, 1, &f.event) < 0 ||
        history_new(limits, &f.history) < 0 || emission(&f, &f.emission) < 0)
        abort();
    return f;
}

static inline Fixture fixture(void) {
    return fixture_with(NULL);
}

static inline void fixture_done(Fixture *f) {
    emission_free(f->emission);
    history_free(f->history);
    pd_events_free(f->events);
    buffer_done(&f->text);
}

static inline int feed(Fixture *f, Make *m, uint32_t type, uint16_t misc, uint64_t time) {
    PdRecord record;
    int r;

    u32(m, 1);
    u32(m, 1);
    u64(m, time);
    u32(m, 3);
    u32(m, 0);
    u64(m, ID + 1);
    record = make_record(m, type, misc);
    r = history_feed(f->history, &record, f->event);
    make_done(m);
    return r;
}

static inline void task(Fixture *f, uint64_t time, PdRecordType type, uint32_t pid, uint32_t tid,
                        uint32_t ppid, uint32_t ptid) {
    Make m = {};

    u32(&m, pid);
    u32(&m, ppid);
    u32(&m, tid);
    u32(&m, ptid);
    u64(&m, time);
    (void)feed(f, &m, type, 0, time);
}

static inline void forks(Fixture *f, uint64_t time, uint32_t pid, uint32_t tid, uint32_t ppid,
                         uint32_t ptid) {
    task(f, time, PD_RECORD_FORK, pid, tid, ppid, ptid);
}

static inline void exits(Fixture *f, uint64_t time, uint32_t pid, uint32_t tid) {
    task(f, time, PD_RECORD_EXIT, pid, tid, 1, 1);
}

static inline void named(Fixture *f, uint64_t time, uint32_t pid, uint32_t tid, const char *name,
                         bool exec) {
    Make m = {};

    u32(&m, pid);
    u32(&m, tid);
    text(&m, name, 16);
    (void)feed(f, &m, PD_RECORD_COMM, exec ? PD_MISC_COMM_EXEC : 0, time);
}

static inline void maps_as(Fixture *f, uint16_t misc, uint32_t prot, uint64_t time, uint32_t pid,
                           uint64_t start, const char *name) {
    Make m = {};

    u32(&m, pid);
    u32(&m, pid);
    u64(&m, start);
    u64(&m, 0x1000);
    u64(&m, 0);
    u32(&m, 8);
    u32(&m, 1);
    u64(&m, name[0] == '[' ? 0 : strlen(name));
    u64(&m, 5);
    u32(&m, prot);
    u32(&m, MAP_PRIVATE);
    text(&m, name, (strlen(name) + 8) / 8 * 8);
    (void)feed(f, &m, PD_RECORD_MMAP2, misc, time);
}

static inline void maps_with(Fixture *f, uint16_t misc, uint64_t time, uint32_t pid, uint64_t start,
                             const char *name) {
    maps_as(f, misc, PROT_READ | PROT_EXEC, time, pid, start, name);
}

static inline void maps_data(Fixture *f, uint64_t time, uint32_t pid, uint64_t start,
                             const char *name) {
    maps_as(f, PD_MISC_USER | PD_MISC_MMAP_DATA, PROT_READ, time, pid, start, name);
}

static inline void maps(Fixture *f, uint64_t time, uint32_t pid, uint64_t start, const char *name) {
    maps_with(f, PD_MISC_USER, time, pid, start, name);
}

static inline void sweep(Fixture *f, uint64_t start) {
    (void)history_settle(f->history, start);
    history_complete(f->history, start);
}

static inline void describe_task(Buffer *out, const PdRecord *record, const PdTask *t) {
    text_printf(out, "%s %u/%u of %u/%u", record->type == PD_RECORD_FORK ? "fork" : "exit", t->pid,
                t->tid, t->ppid, t->ptid);
    if (record->misc & PD_MISC_FORK_EXEC)
        text_puts(out, " anew");
}

static inline void describe_mmap(Buffer *out, const PdMmap *m) {
    text_printf(out, "maps %u %" PRIx64 " %.*s", m->pid, m->start, (int)m->filename.size,
                m->filename.data);
    for (size_t i = 0; i < m->build_id_size; i++)
        text_printf(out, "%s%02x", i == 0 ? " id " : "", m->build_id[i]);
}

static inline void describe(Buffer *out, const PdRecord *record, const PdBody *b) {
    switch (record->type) {
    case PD_RECORD_FORK:
    case PD_RECORD_EXIT:
        describe_task(out, record, &b->task);
        break;
    case PD_RECORD_COMM:
        text_printf(out, "comm %u/%u %.*s%s", b->comm.pid, b->comm.tid, (int)b->comm.comm.size,
                    b->comm.comm.data, b->comm.exec ? " exec" : "");
        break;
    case PD_RECORD_MMAP:
    case PD_RECORD_MMAP2:
        text_puts(out, record->misc & PD_MISC_MMAP_DATA ? "data: " : "");
        describe_mmap(out, &b->mmap);
        break;
    case PD_RECORD_KSYMBOL:
        text_printf(out, "ksymbol %.*s%s", (int)b->ksymbol.name.size, b->ksymbol.name.data,
                    b->ksymbol.flags ? " gone" : "");
        break;
    case PD_RECORD_NAMESPACES:
        text_printf(out, "namespaces %u/%u %zu bytes, first %" PRIu64, b->namespaces.pid,
                    b->namespaces.tid, b->namespaces.links.size,
                    load_u64(b->namespaces.links.data + sizeof(uint64_t), false));
        break;
    case PD_RECORD_CGROUP:
        text_printf(out, "cgroup %" PRIu64 " %.*s", b->cgroup.id, (int)b->cgroup.path.size,
                    b->cgroup.path.data);
        break;
    default:
        text_printf(out, "type %u", record->type);
    }
}

static inline const char *as_text(Fixture *f, Buffer *records) {
    buffer_clear(&f->text);
    for (size_t at = 0; at < records->size;) {
        PdRecord record = pd_record_at(records->data + at, false);
        PdStamp stamp;
        PdBody body;

        if (pd_events_stamp(f->events, &record, &stamp) < 0 || stamp.id != ID ||
            pd_record_parse(&record, f->event, &body) < 0)
            return "a record that makes no sense";
        text_printf(&f->text, "%" PRIu64 " ", stamp.time);
        describe(&f->text, &record, &body);
        text_putc(&f->text, '\n');
        at += record.size;
    }
    buffer_append(&f->text, "", 1);
    buffer_clear(records);
    return (const char *)f->text.data;
}

/* The records that the emission adds now. */
static inline const char *said(Fixture *f) {
    return as_text(f, emission_pending(f->emission));
}

static inline const char *needs(Fixture *f, uint32_t pid, uint32_t tid, uint64_t time) {
    if (emission_need(f->emission, pid, tid, time, 0) < 0)
        return "an error";
    return said(f);
}

/* first_namespace 0: the namespaces were not read. */
static inline int install_living_in(Fixture *f, uint32_t pid, uint64_t begin, uint64_t end,
                                    const char *comm, uint64_t start, const char *path,
                                    uint64_t first_namespace) {
    BaselineThread threads[] = {{.tid = pid, .comm = comm}, {.tid = pid + 1, .comm = "helper"}};
    PdMmap map = {.start = start,
                  .length = 0x1000,
                  .major = 8,
                  .minor = 1,
                  .inode = strlen(path),
                  .prot = PROT_READ | PROT_EXEC,
                  .flags = MAP_PRIVATE,
                  .filename = {.data = (const uint8_t *)path, .size = strlen(path)}};
    Baseline baseline = {.pid = pid,
                         .ppid = 1,
                         .begin_ns = begin,
                         .end_ns = end,
                         .threads = threads,
                         .n_threads = 2,
                         .maps = &map,
                         .n_maps = 1,
                         .namespaces = {{4, first_namespace}},
                         .has_namespaces = first_namespace != 0};

    return history_install(f->history, &baseline);
}

static inline int install(Fixture *f, uint32_t pid, uint64_t begin, uint64_t end, const char *comm,
                          uint64_t start, const char *path) {
    return install_living_in(f, pid, begin, end, comm, start, path, 0);
}

/* Process sh (10, with a thread 11) exists, the floor is 100, everything up to 200 is settled. */
static inline Fixture with_shell(void) {
    Fixture f = fixture();

    sweep(&f, 60);
    (void)install(&f, 10, 50, 55, "sh", 0x1000, "/bin/sh");
    sweep(&f, 100);
    sweep(&f, 200);
    return f;
}
