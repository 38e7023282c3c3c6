/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/merge/merge-state.h"

#include <errno.h>
#include <string.h>

#include "client/file/recording.h"

/*
 * The first pass. Recordings may be merged if what they say about host and clock agrees; a missing
 * fact (a stream may lack a feature, a recorder that was killed writes none) does not prevent
 * merging.
 */

/* The address at which the kernel's text was mapped; it changes at every boot. */
static void merge_scan_note_kernel(MergeInput *in, const PdRecord *record, const PdStamp *stamp) {
    PdBody body;

    if (in->kernel_start != 0 || record->type != PD_RECORD_MMAP ||
        (record->misc & PD_MISC_CPUMODE_MASK) != PD_MISC_KERNEL ||
        pd_record_parse(record, stamp->event, &body) < 0 || body.mmap.pid != UINT32_MAX)
        return;
    if (body.mmap.filename.size >= 17 &&
        memcmp(body.mmap.filename.data, "[kernel.kallsyms]", 17) == 0)
        in->kernel_start = body.mmap.pgoff;
}

static void merge_scan_note_record(MergeInput *in, const PdRecord *record, const PdStamp *stamp) {
    merge_scan_note_kernel(in, record, stamp);
    if (record->type == PD_RECORD_AUXTRACE_INFO || record->type == PD_RECORD_AUXTRACE)
        in->has_auxtrace = true;
    if (record->type >= PD_RECORD_USER || !stamp->has_time || stamp->time == 0)
        return;
    in->first_time = in->has_time ? MIN(in->first_time, stamp->time) : stamp->time;
    in->has_time = true;
    if (record->type != PD_RECORD_SAMPLE)
        return;
    in->first_sample_time = in->has_samples ? MIN(in->first_sample_time, stamp->time) : stamp->time;
    in->last_sample_time = MAX(in->last_sample_time, stamp->time);
    in->has_samples = true;
}

static int merge_scan_input(MergeInput *in) {
    PdRecord record;
    int r;

    while ((r = pd_reader_next(in->reader, &record)) > 0) {
        PdStamp stamp = {};

        if (pd_events_stamp(pd_reader_events(in->reader), &record, &stamp) == 0)
            merge_scan_note_record(in, &record, &stamp);
    }
    return r < 0 ? r : pd_reader_rewind(in->reader);
}

/* Sorts by the time at which they begin; equal ones keep the order of the arguments. */
static void merge_scan_sort_inputs(Merge *m) {
    for (size_t i = 1; i < m->n_inputs; i++)
        for (size_t k = i; k > 0 && m->inputs[k].first_time < m->inputs[k - 1].first_time; k--) {
            MergeInput in = m->inputs[k];

            m->inputs[k] = m->inputs[k - 1];
            m->inputs[k - 1] = in;
        }
}

int merge_scan(Merge *m) {
    for (size_t i = 0; i < m->n_inputs; i++) {
        MergeInput *in = &m->inputs[i];
        int r = merge_scan_input(in);

        if (r == -ESPIPE)
            return complain(
                STATUS_FAILED,
                "'%s' can be read only once, and merge reads twice; save it to a file first.",
                recording_name(in->path));
        if (r < 0)
            return complain(STATUS_FAILED, "Failed to read '%s': %s.", recording_name(in->path),
                            strerror(-r));
        if (pd_events_count(pd_reader_events(in->reader)) == 0)
            return complain(STATUS_FAILED,
                            "'%s' describes no event, so its records cannot be read.",
                            recording_name(in->path));
    }
    merge_scan_sort_inputs(m);
    return STATUS_OK;
}

/* clang-format off */
static const struct {
    unsigned bit;
    const char *what;
} compared[] = {
    {PD_FEATURE_HOSTNAME,  "host"},
    {PD_FEATURE_ARCH,      "architecture"},
    {PD_FEATURE_OSRELEASE, "kernel"},
    {PD_FEATURE_CLOCKID,   "resolution of the clock"},
};
/* clang-format on */

static void merge_scan_name_difference(Buffer *out, const char *what) {
    if (out->size > 0)
        buffer_append(out, ", ", 2);
    buffer_append(out, what, strlen(what));
}

static bool merge_scan_same_feature(Merge *m, const MergeInput *a, const MergeInput *b,
                                    unsigned bit) {
    Bytes x, y;

    if (pd_reader_feature(a->reader, bit, &x) < 0 || pd_reader_feature(b->reader, bit, &y) < 0)
        return true;
    /* Strings are padded, to different lengths. */
    if (bit == PD_FEATURE_HOSTNAME || bit == PD_FEATURE_ARCH || bit == PD_FEATURE_OSRELEASE) {
        if (x.size <= 4 || y.size <= 4)
            return x.size == y.size;
        return strncmp((const char *)x.data + 4, (const char *)y.data + 4,
                       MIN(x.size, y.size) - 4) == 0;
    }
    return bytes_equal(x, y);
}

typedef struct Shape {
    bool sample_id_all, time, use_clockid;
    int32_t clockid;
} Shape;

static Shape merge_scan_shape_of(const PdEvent *event) {
    const PdAttr *attr = &event->attr;

    return (Shape){
        .sample_id_all = attr->flags & PD_ATTR_SAMPLE_ID_ALL,
        .time = attr->sample_type & PD_SAMPLE_TIME,
        .use_clockid = attr->flags & PD_ATTR_USE_CLOCKID,
        .clockid = attr->flags & PD_ATTR_USE_CLOCKID ? attr->clockid : 0,
    };
}

static bool merge_scan_same_clock(const MergeInput *a, const MergeInput *b) {
    Shape x = merge_scan_shape_of(pd_events_at(pd_reader_events(a->reader), 0));
    Shape y = merge_scan_shape_of(pd_events_at(pd_reader_events(b->reader), 0));

    return x.use_clockid == y.use_clockid && x.clockid == y.clockid;
}

/* Whether all its records have a time. */
static bool merge_scan_has_time(const MergeInput *in) {
    const PdEvents *events = pd_reader_events(in->reader);

    for (size_t i = 0; i < pd_events_count(events); i++) {
        Shape shape = merge_scan_shape_of(pd_events_at(events, i));

        if (!shape.sample_id_all || !shape.time)
            return false;
    }
    return true;
}

static int merge_scan_compare_pair(Merge *m, const MergeInput *a, const MergeInput *b) {
    _cleanup_(buffer_done) Buffer differ = {};

    if (pd_reader_header(a->reader)->big_endian != pd_reader_header(b->reader)->big_endian)
        merge_scan_name_difference(&differ, "byte order");
    for (size_t i = 0; i < ARRAY_SIZE(compared); i++)
        if (pd_reader_header(a->reader)->swap == pd_reader_header(b->reader)->swap &&
            !merge_scan_same_feature(m, a, b, compared[i].bit))
            merge_scan_name_difference(&differ, compared[i].what);
    if (!merge_scan_same_clock(a, b))
        merge_scan_name_difference(&differ, "clock");
    if (differ.size == 0 && a->kernel_start != 0 && b->kernel_start != 0 &&
        a->kernel_start != b->kernel_start)
        merge_scan_name_difference(&differ, "boot");
    buffer_zero(&differ, 1);
    if (buffer_error(&differ) < 0)
        return complain(STATUS_FAILED, "There is not enough memory.");
    if (differ.size > 1)
        return complain(STATUS_FAILED,
                        "'%s' and '%s' cannot be merged, since they differ in %s; only recordings "
                        "of one host and one boot can.",
                        a->path, b->path, (const char *)differ.data);
    return STATUS_OK;
}

int merge_compare(Merge *m) {
    const MergeInput *first = &m->inputs[0], *with_auxtrace = NULL;

    for (size_t i = 0; i < m->n_inputs; i++) {
        const MergeInput *in = &m->inputs[i];
        int status = merge_scan_compare_pair(m, first, in);

        if (status != STATUS_OK)
            return status;
        if (!merge_scan_has_time(in))
            return complain(STATUS_FAILED,
                            "'%s' cannot be merged: some of its records have no time.", in->path);
        if (in->has_auxtrace && with_auxtrace)
            return complain(STATUS_FAILED,
                            "'%s' and '%s' cannot be merged: both hold AUX area data, and a "
                            "recording holds at most one.",
                            with_auxtrace->path, in->path);
        with_auxtrace = in->has_auxtrace ? in : with_auxtrace;
    }
    return STATUS_OK;
}
