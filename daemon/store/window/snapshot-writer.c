/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/window/snapshot-writer.h"

#include <errno.h>
#include <time.h>

#include "perfdata/writer/emit.h"
#include "perfdata/writer/encode.h"

/*
 * Gathers samples into frames for each file. The side-band that they need is written before them,
 * so that a reader in file order finds it. FINISHED_ROUND promises that no later record is older
 * than what came before the previous round; where that holds, one is written now and then, so that
 * perf need not hold all records back.
 *
 * Compression costs more than everything else, so a large frame that is wanted as a whole is
 * copied. Small frames are gathered, since they compress badly.
 */

enum { GATHER_BYTES = 256 << 10, KEEP_BYTES = 64 << 10, ROUND_BYTES = 4 << 20 };

int snapshot_writer_open(SnapshotWriter *w, int fd, const SnapshotWriterOptions *options,
                         const PdEvents *events) {
    bool folder = options->layout == LAYOUT_DIRECTORY;
    PdWriterOptions writer = {.layout = folder ? PD_LAYOUT_DIRECTORY : PD_LAYOUT_FILE,
                              .zstd_level = options->zstd_level,
                              .n_files = folder ? options->n_files : 0,
                              .tally = true};
    int r;

    *w = (SnapshotWriter){.options = *options};
    r = pd_writer_new(fd, &writer, &w->writer);
    for (size_t i = 0; r == 0 && i < pd_events_count(events); i++)
        r = pd_writer_add_event(w->writer, pd_events_at(events, i));
    return r == 0 ? pd_writer_begin(w->writer) : r;
}

void snapshot_writer_done(SnapshotWriter *w) {
    w->writer = pd_writer_free(w->writer);
    for (size_t i = 0; i < SNAPSHOT_WRITER_FILES_MAX; i++)
        buffer_done(&w->gathered[i].records);
}

static int snapshot_writer_write_side_band(SnapshotWriter *w, Buffer *side_band) {
    int r = buffer_error(side_band);

    if (r < 0 || side_band->size == 0)
        return r;
    r = pd_writer_write(w->writer, 0, side_band->data, side_band->size);
    if (r == 0)
        r = pd_writer_end_frame(w->writer, 0);
    w->raw_bytes += side_band->size;
    buffer_clear(side_band);
    return r;
}

static int snapshot_writer_write_samples(SnapshotWriter *w, size_t i) {
    uint32_t file = w->options.layout == LAYOUT_DIRECTORY ? (uint32_t)i + 1 : 0;
    Buffer *records = &w->gathered[i].records;
    int r = buffer_error(records);

    if (r < 0 || records->size == 0)
        return r;
    r = pd_writer_write_samples(w->writer, file, records->data, records->size,
                                &w->gathered[i].span);
    if (r == 0)
        r = pd_writer_end_frame(w->writer, file);
    w->raw_bytes += records->size;
    buffer_clear(records);
    w->gathered[i].span = (PdSpan){};
    return r;
}

static PdSpan snapshot_writer_join(PdSpan a, PdSpan b) {
    if (a.samples == 0 || b.samples == 0)
        return a.samples == 0 ? b : a;
    return (PdSpan){.samples = a.samples + b.samples,
                    .first_ns = MIN(a.first_ns, b.first_ns),
                    .last_ns = MAX(a.last_ns, b.last_ns)};
}

/* The records of the frame are treated like all others. */
static void snapshot_writer_leave_frame(SnapshotWriter *w) {
    for (size_t i = 0; w->in_frame && i < SNAPSHOT_WRITER_FILES_MAX; i++)
        w->gathered[i].span = snapshot_writer_join(w->gathered[i].span_before, w->gathered[i].span);
    w->in_frame = false;
}

int snapshot_writer_flush(SnapshotWriter *w, Buffer *side_band) {
    int r = snapshot_writer_write_side_band(w, side_band);

    snapshot_writer_leave_frame(w);

    for (size_t i = 0; r == 0 && i < SNAPSHOT_WRITER_FILES_MAX; i++)
        r = snapshot_writer_write_samples(w, i);
    return r;
}

static void snapshot_writer_widen(PdSpan *span, uint64_t time) {
    span->first_ns = span->samples ? MIN(span->first_ns, time) : time;
    span->last_ns = MAX(span->last_ns, time);
    span->samples++;
}

int snapshot_writer_add(SnapshotWriter *w, Buffer *side_band, const PdRecord *record,
                        const PdStamp *stamp) {
    bool folder = w->options.layout == LAYOUT_DIRECTORY;
    size_t i = folder && stamp->has_cpu ? stamp->cpu % w->options.n_files : 0;

    if (record->type == PD_RECORD_SAMPLE) {
        snapshot_writer_widen(&w->gathered[i].span, stamp->time);
        w->first_ns = w->samples ? MIN(w->first_ns, stamp->time) : stamp->time;
        w->last_ns = MAX(w->last_ns, stamp->time);
        w->samples++;
    }
    w->greatest_ns = MAX(w->greatest_ns, stamp->time);
    buffer_append(&w->gathered[i].records, record->data, record->size);
    return w->gathered[i].records.size >= (w->in_frame ? 2 : 1) * (size_t)GATHER_BYTES
               ? snapshot_writer_flush(w, side_band)
               : 0;
}

void snapshot_writer_begin_frame(SnapshotWriter *w) {
    snapshot_writer_leave_frame(w);
    for (size_t i = 0; i < SNAPSHOT_WRITER_FILES_MAX; i++) {
        w->gathered[i].before = w->gathered[i].records.size;
        w->gathered[i].span_before = w->gathered[i].span;
        w->gathered[i].span = (PdSpan){};
    }
    w->in_frame = true;
}

/* The only file that has records of the frame; -1: there are several, or not all records were
 * added. */
static int snapshot_writer_file_of_frame(const SnapshotWriter *w, uint64_t raw) {
    int at = -1;

    for (size_t i = 0; i < SNAPSHOT_WRITER_FILES_MAX; i++) {
        size_t came = w->gathered[i].records.size - w->gathered[i].before;

        if (came > 0 && (at >= 0 || came != raw))
            return -1;
        at = came > 0 ? (int)i : at;
    }
    return at;
}

int snapshot_writer_end_frame(SnapshotWriter *w, Buffer *side_band, Bytes packed, uint64_t raw) {
    bool wanted = w->in_frame && w->options.keep_frames && raw >= KEEP_BYTES;
    int i = wanted ? snapshot_writer_file_of_frame(w, raw) : -1, r;
    PdSpan span;

    if (i < 0) {
        size_t most = 0;

        snapshot_writer_leave_frame(w);
        for (size_t k = 0; k < SNAPSHOT_WRITER_FILES_MAX; k++)
            most = MAX(most, w->gathered[k].records.size);
        return most >= GATHER_BYTES ? snapshot_writer_flush(w, side_band) : 0;
    }
    span = w->gathered[i].span;
    w->gathered[i].span = (PdSpan){};
    w->gathered[i].records.size = w->gathered[i].before;
    snapshot_writer_leave_frame(w);
    r = snapshot_writer_write_side_band(w, side_band);
    if (r == 0)
        r = pd_writer_write_packed(w->writer, w->options.layout == LAYOUT_DIRECTORY ? i + 1 : 0,
                                   packed, raw, &span);
    w->raw_bytes += raw;
    return r;
}

int snapshot_writer_add_plain(SnapshotWriter *w, const PdRecord *record, uint64_t time) {
    w->greatest_ns = MAX(w->greatest_ns, time);
    w->raw_bytes += record->size;
    return pd_writer_write(w->writer, 0, record->data, record->size);
}

uint64_t snapshot_writer_bytes(const SnapshotWriter *w) {
    return pd_writer_stored_bytes(w->writer);
}

int snapshot_writer_end_group(SnapshotWriter *w, Buffer *side_band, uint64_t least_ns) {
    _cleanup_(buffer_done) Buffer mark = {};
    int r;

    if (w->options.layout == LAYOUT_DIRECTORY || w->raw_bytes - w->round_raw_bytes < ROUND_BYTES ||
        (w->round_ns > 0 && least_ns < w->round_ns))
        return 0;
    r = snapshot_writer_flush(w, side_band);
    pd_emit_mark(&mark, PD_RECORD_FINISHED_ROUND);
    if (r == 0)
        r = buffer_error(&mark);
    if (r == 0)
        r = pd_writer_write(w->writer, 0, mark.data, mark.size);
    w->round_ns = w->greatest_ns;
    w->round_raw_bytes = w->raw_bytes;
    return r;
}

/* True for features that are generated, or that describe the file they are in. */
static bool snapshot_writer_is_ours(unsigned bit) {
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

int snapshot_writer_carry_features(SnapshotWriter *w, PdReader *reader) {
    for (unsigned bit = 1; bit < PD_FEATURE_BITS; bit++) {
        Bytes body;
        int r = snapshot_writer_is_ours(bit) ? -ENOENT : pd_reader_feature(reader, bit, &body);

        if (r == -ENOENT || r == -EBADMSG || r == -EFBIG)
            continue;
        if (r == 0)
            r = pd_writer_set_feature(w->writer, bit, body);
        if (r < 0)
            return r;
    }
    return 0;
}

static int snapshot_writer_set_feature(SnapshotWriter *w, unsigned bit, const Buffer *body) {
    int r = buffer_error(body);

    return r < 0 || body->size == 0
               ? r
               : MIN(pd_writer_set_feature(w->writer, bit, buffer_bytes(body)), 0);
}

static int snapshot_writer_set_clock(SnapshotWriter *w, const ClockAnchor *clock) {
    _cleanup_(buffer_done) Buffer body = {};
    const PdEnvironment environment = {
        .has = {[PD_FEATURE_CLOCK_DATA] = true},
        .clock_data_version = 1,
        .clock_data_clockid = CLOCK_MONOTONIC,
        .clock_data_clockid_ns = clock->monotonic_ns,
        .clock_data_wall_ns = clock->real_ns,
    };
    int r = pd_environment_write(&environment, PD_FEATURE_CLOCK_DATA, &body, false);

    return r < 0 ? r : snapshot_writer_set_feature(w, PD_FEATURE_CLOCK_DATA, &body);
}

int snapshot_writer_finish(SnapshotWriter *w, const PdEvents *events, Bytes tracing,
                           const ClockAnchor *clock, const PdCoverage *coverage) {
    _cleanup_(buffer_done) Buffer description = {}, groups = {}, covered = {};
    int r = clock ? snapshot_writer_set_clock(w, clock) : 0;

    if (r == 0)
        r = pd_encode_coverage(&covered, coverage, false);
    if (r == 0)
        r = snapshot_writer_set_feature(w, PD_FEATURE_PROFD_COVERAGE, &covered);
    pd_encode_event_desc(&description, events, false);
    if (r == 0)
        r = snapshot_writer_set_feature(w, PD_FEATURE_EVENT_DESC, &description);
    pd_encode_group_desc(&groups, events, false);
    if (r == 0)
        r = snapshot_writer_set_feature(w, PD_FEATURE_GROUP_DESC, &groups);
    if (r == 0 && tracing.size > 0)
        r = MIN(pd_writer_set_feature(w->writer, PD_FEATURE_TRACING_DATA, tracing), 0);
    return r == 0 ? pd_writer_finish(w->writer) : r;
}
