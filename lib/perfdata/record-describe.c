/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "perfdata/record-row.h"

/*
 * What pd_record_describe() says of any record: its header, its stamp, and then whatever the row of
 * its type has to say. One member a fact, under a name that no other member of the record has:
 * `pid` and `tid` are those of the body where it has them (the task a COMM is about) and those of
 * the stamp become `stamp_pid` and `stamp_tid`; everywhere else they are the stamp's.
 */

static const char *const cpumodes[] = {"unknown",    "kernel",       "user",
                                       "hypervisor", "guest_kernel", "guest_user"};

static void describe_header(const PdRecord *r, const RecordRow *row, Fields *f) {
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
    if (r->type > PD_RECORD_SIMPLEPERF) /* the size goes on in misc */
        return;
    fields_hex(f, "misc", r->misc);
    if (r->type < PD_RECORD_USER || r->type == PD_RECORD_BUILD_ID)
        fields_choice(f, "cpumode", r->misc & PD_MISC_CPUMODE_MASK, cpumodes, ARRAY_SIZE(cpumodes));
}

static void describe_stamp(const PdStamp *s, bool tasks, Fields *f) {
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

/* What cannot be read is shown as it is. */
static void describe_bytes(const PdRecord *r, const char *why, Fields *f) {
    if (why)
        fields_str(f, "error", why);
    if (r->size > PD_RECORD_HEADER_SIZE)
        fields_hex_bytes(f, "bytes",
                         (Bytes){.data = r->data + PD_RECORD_HEADER_SIZE,
                                 .size = r->size - PD_RECORD_HEADER_SIZE});
}

static const char *why_not(const PdRecord *r, const PdEvent *event) {
    if (!event && (r->type == PD_RECORD_SAMPLE || r->type == PD_RECORD_READ))
        return "no event has its id, so its fields are not known";
    return "it does not hold what its type announces";
}

void pd_record_describe(const PdRecord *record, const PdStamp *stamp, const PdTracing *tracing,
                        Fields *fields) {
    const RecordRow *row = record_row(record->type);
    RecordView view = {.record = record, .stamp = stamp, .tracing = tracing};
    PdBody body;
    int r;

    describe_header(record, row, fields);
    describe_stamp(stamp, row && row->tasks, fields);
    if (!row || !row->parse) {
        describe_bytes(record, NULL, fields);
        return;
    }
    r = record_parse_into(row, record, stamp->event, &body);
    if (r < 0)
        describe_bytes(record, why_not(record, stamp->event), fields);
    else
        row->describe(&body, &view, fields);
}
