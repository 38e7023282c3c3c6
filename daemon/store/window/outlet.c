/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/window/outlet.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "perfdata/writer/emit.h"
#include "perfdata/writer/encode.h"

/*
 * Samples gather to a frame's worth for each file. What they need is written before them, so that
 * whoever reads in the order of the file finds it. A FINISHED_ROUND promises that nothing younger
 * than what it follows on has anything older to come; where that holds there is one now and then,
 * so that perf need not keep all of it at once.
 *
 * Compressing costs more than all the rest, so a large frame that is wanted as a whole is passed
 * on. Small ones gather, since they compress badly.
 */

enum { GATHER_BYTES = 256 << 10, KEEP_BYTES = 64 << 10, ROUND_BYTES = 4 << 20 };

int outlet_open(Outlet *o, int fd, const OutletOptions *options, const PdEvents *events) {
    bool folder = options->layout == LAYOUT_DIRECTORY;
    PdWriterOptions writer = {.layout = folder ? PD_LAYOUT_DIRECTORY : PD_LAYOUT_FILE,
                              .zstd_level = options->zstd_level,
                              .n_files = folder ? options->n_files : 0,
                              .tally = true};
    int r;

    *o = (Outlet){.options = *options};
    r = pd_writer_new(fd, &writer, &o->writer);
    for (size_t i = 0; r == 0 && i < pd_events_count(events); i++)
        r = pd_writer_add_event(o->writer, pd_events_at(events, i));
    return r == 0 ? pd_writer_begin(o->writer) : r;
}

void outlet_done(Outlet *o) {
    o->writer = pd_writer_free(o->writer);
    for (size_t i = 0; i < OUTLET_FILES_MAX; i++)
        buffer_done(&o->gathered[i].records);
}

static int write_side_band(Outlet *o, Buffer *side_band) {
    int r = buffer_error(side_band);

    if (r < 0 || side_band->size == 0)
        return r;
    r = pd_writer_write(o->writer, 0, side_band->data, side_band->size);
    if (r == 0)
        r = pd_writer_end_frame(o->writer, 0);
    o->raw_bytes += side_band->size;
    buffer_clear(side_band);
    return r;
}

static int write_samples(Outlet *o, size_t i) {
    uint32_t file = o->options.layout == LAYOUT_DIRECTORY ? (uint32_t)i + 1 : 0;
    Buffer *records = &o->gathered[i].records;
    int r = buffer_error(records);

    if (r < 0 || records->size == 0)
        return r;
    r = pd_writer_write_samples(o->writer, file, records->data, records->size,
                                &o->gathered[i].span);
    if (r == 0)
        r = pd_writer_end_frame(o->writer, file);
    o->raw_bytes += records->size;
    buffer_clear(records);
    o->gathered[i].span = (PdSpan){};
    return r;
}

static PdSpan join(PdSpan a, PdSpan b) {
    if (a.samples == 0 || b.samples == 0)
        return a.samples == 0 ? b : a;
    return (PdSpan){.samples = a.samples + b.samples,
                    .first_ns = MIN(a.first_ns, b.first_ns),
                    .last_ns = MAX(a.last_ns, b.last_ns)};
}

/* What came of the frame is like all else. */
static void leave_frame(Outlet *o) {
    for (size_t i = 0; o->in_frame && i < OUTLET_FILES_MAX; i++)
        o->gathered[i].span = join(o->gathered[i].span_before, o->gathered[i].span);
    o->in_frame = false;
}

int outlet_flush(Outlet *o, Buffer *side_band) {
    int r = write_side_band(o, side_band);

    leave_frame(o);

    for (size_t i = 0; r == 0 && i < OUTLET_FILES_MAX; i++)
        r = write_samples(o, i);
    return r;
}

static void widen(PdSpan *span, uint64_t time) {
    span->first_ns = span->samples ? MIN(span->first_ns, time) : time;
    span->last_ns = MAX(span->last_ns, time);
    span->samples++;
}

int outlet_add(Outlet *o, Buffer *side_band, const PdRecord *record, const PdStamp *stamp) {
    bool folder = o->options.layout == LAYOUT_DIRECTORY;
    size_t i = folder && stamp->has_cpu ? stamp->cpu % o->options.n_files : 0;

    if (record->type == PD_RECORD_SAMPLE) {
        widen(&o->gathered[i].span, stamp->time);
        o->first_ns = o->samples ? MIN(o->first_ns, stamp->time) : stamp->time;
        o->last_ns = MAX(o->last_ns, stamp->time);
        o->samples++;
    }
    o->greatest_ns = MAX(o->greatest_ns, stamp->time);
    buffer_append(&o->gathered[i].records, record->data, record->size);
    return o->gathered[i].records.size >= (o->in_frame ? 2 : 1) * (size_t)GATHER_BYTES
               ? outlet_flush(o, side_band)
               : 0;
}

void outlet_begin_frame(Outlet *o) {
    leave_frame(o);
    for (size_t i = 0; i < OUTLET_FILES_MAX; i++) {
        o->gathered[i].before = o->gathered[i].records.size;
        o->gathered[i].span_before = o->gathered[i].span;
        o->gathered[i].span = (PdSpan){};
    }
    o->in_frame = true;
}

/* The only place where the frame's records are; -1: there are others, or not all of them. */
static int place_of_frame(const Outlet *o, uint64_t raw) {
    int at = -1;

    for (size_t i = 0; i < OUTLET_FILES_MAX; i++) {
        size_t came = o->gathered[i].records.size - o->gathered[i].before;

        if (came > 0 && (at >= 0 || came != raw))
            return -1;
        at = came > 0 ? (int)i : at;
    }
    return at;
}

int outlet_end_frame(Outlet *o, Buffer *side_band, Bytes packed, uint64_t raw) {
    bool wanted = o->in_frame && o->options.keep_frames && raw >= KEEP_BYTES;
    int i = wanted ? place_of_frame(o, raw) : -1, r;
    PdSpan span;

    if (i < 0) {
        size_t most = 0;

        leave_frame(o);
        for (size_t k = 0; k < OUTLET_FILES_MAX; k++)
            most = MAX(most, o->gathered[k].records.size);
        return most >= GATHER_BYTES ? outlet_flush(o, side_band) : 0;
    }
    span = o->gathered[i].span;
    o->gathered[i].span = (PdSpan){};
    o->gathered[i].records.size = o->gathered[i].before;
    leave_frame(o);
    r = write_side_band(o, side_band);
    if (r == 0)
        r = pd_writer_write_packed(o->writer, o->options.layout == LAYOUT_DIRECTORY ? i + 1 : 0,
                                   packed, raw, &span);
    o->raw_bytes += raw;
    return r;
}

int outlet_add_plain(Outlet *o, const PdRecord *record, uint64_t time) {
    o->greatest_ns = MAX(o->greatest_ns, time);
    o->raw_bytes += record->size;
    return pd_writer_write(o->writer, 0, record->data, record->size);
}

uint64_t outlet_bytes(const Outlet *o) {
    return pd_writer_stored_bytes(o->writer);
}

int outlet_end_group(Outlet *o, Buffer *side_band, uint64_t least_ns) {
    _cleanup_(buffer_done) Buffer mark = {};
    int r;

    if (o->options.layout == LAYOUT_DIRECTORY || o->raw_bytes - o->round_raw_bytes < ROUND_BYTES ||
        (o->round_ns > 0 && least_ns < o->round_ns))
        return 0;
    r = outlet_flush(o, side_band);
    pd_emit_mark(&mark, PD_RECORD_FINISHED_ROUND);
    if (r == 0)
        r = buffer_error(&mark);
    if (r == 0)
        r = pd_writer_write(o->writer, 0, mark.data, mark.size);
    o->round_ns = o->greatest_ns;
    o->round_raw_bytes = o->raw_bytes;
    return r;
}

/* What is made anew, or speaks of the file it stands in. */
static bool is_ours(unsigned bit) {
    switch (bit) {
    case PD_FEATURE_TRACING_DATA:
    case PD_FEATURE_BUILD_ID:
    case PD_FEATURE_EVENT_DESC:
    case PD_FEATURE_GROUP_DESC:
    case PD_FEATURE_AUXTRACE:
    case PD_FEATURE_SAMPLE_TIME:
    case PD_FEATURE_DIR_FORMAT:
    case PD_FEATURE_COMPRESSED:
    case PD_FEATURE_CLOCK_DATA:
    case PD_FEATURE_PROFD_COVERAGE:
        return true;
    default:
        return false;
    }
}

int outlet_carry_features(Outlet *o, PdReader *reader) {
    for (unsigned bit = 1; bit < PD_FEATURE_BITS; bit++) {
        Bytes body;
        int r = is_ours(bit) ? -ENOENT : pd_reader_feature(reader, bit, &body);

        if (r == -ENOENT || r == -EBADMSG || r == -EFBIG)
            continue;
        if (r == 0)
            r = pd_writer_set_feature(o->writer, bit, body);
        if (r < 0)
            return r;
    }
    return 0;
}

static int set_feature(Outlet *o, unsigned bit, const Buffer *body) {
    int r = buffer_error(body);

    return r < 0 || body->size == 0
               ? r
               : MIN(pd_writer_set_feature(o->writer, bit, buffer_bytes(body)), 0);
}

static int set_clock(Outlet *o, const ClockAnchor *clock) {
    _cleanup_(buffer_done) Buffer body = {};
    const PdEnvironment environment = {
        .has = {[PD_FEATURE_CLOCK_DATA] = true},
        .clock_data_version = 1,
        .clock_data_clockid = CLOCK_MONOTONIC,
        .clock_data_clockid_ns = clock->monotonic_ns,
        .clock_data_wall_ns = clock->real_ns,
    };
    int r = pd_environment_write(&environment, PD_FEATURE_CLOCK_DATA, &body, false);

    return r < 0 ? r : set_feature(o, PD_FEATURE_CLOCK_DATA, &body);
}

int outlet_finish(Outlet *o, const PdEvents *events, Bytes tracing, const ClockAnchor *clock,
                  const PdCoverage *coverage) {
    _cleanup_(buffer_done) Buffer description = {}, groups = {}, covered = {};
    int r = clock ? set_clock(o, clock) : 0;

    if (r == 0)
        r = pd_encode_coverage(&covered, coverage, false);
    if (r == 0)
        r = set_feature(o, PD_FEATURE_PROFD_COVERAGE, &covered);
    pd_encode_event_desc(&description, events, false);
    if (r == 0)
        r = set_feature(o, PD_FEATURE_EVENT_DESC, &description);
    pd_encode_group_desc(&groups, events, false);
    if (r == 0)
        r = set_feature(o, PD_FEATURE_GROUP_DESC, &groups);
    if (r == 0 && tracing.size > 0)
        r = MIN(pd_writer_set_feature(o->writer, PD_FEATURE_TRACING_DATA, tracing), 0);
    return r == 0 ? pd_writer_finish(o->writer) : r;
}
