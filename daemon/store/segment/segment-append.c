/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <sys/stat.h>

#include "perfdata/writer/emit.h"
#include "store/disk/dirfd.h"
#include "store/disk/disk.h"
#include "store/segment/segment-private.h"

/*
 * Turns batches into frames. Consecutive batches of a kind within a sweep share a frame up to its
 * maximum size, since small frames compress badly; a frame never spans sweeps or mixes kinds. Each
 * frame is an entry in the manifest's index. In a directory, side-band goes to `data` and samples
 * go to data.N of their CPU.
 */

enum { ANCHOR_MOVED_NS = 1000000 };

/* The smallest and largest time of the records; both 0 if none has a time. */
static void segment_find_times(const PdEvents *events, const uint8_t *p, size_t n,
                               uint64_t *ret_first, uint64_t *ret_last) {
    uint64_t first = UINT64_MAX, last = 0;
    Bytes records = {.data = p, .size = n};
    PdRecord record;
    PdStamp stamp;

    while (pd_records_next(&records, &record)) {
        if (pd_events_stamp(events, &record, &stamp) < 0 || !stamp.has_time)
            continue;
        first = MIN(first, stamp.time);
        last = MAX(last, stamp.time);
    }
    *ret_first = MIN(first, last);
    *ret_last = last;
}

static int segment_end_frame(Segment *s, uint32_t file) {
    ManifestFrame *frame = &s->open[file];
    int r;

    if (frame->raw == 0)
        return 0;
    r = pd_writer_end_frame(s->writer, file);
    if (r == 0)
        r = manifest_add_frame(s->manifest, frame);
    if (r == 0)
        frame->raw = 0;
    return r;
}

int segment_end_frames(Segment *s) {
    for (uint32_t file = 0; file <= s->plan->n_files; file++) {
        int r = segment_end_frame(s, file);

        if (r < 0)
            return r;
    }
    return 0;
}

/* The size of the whole records that fit into one frame; 0: there is no valid record. */
static size_t segment_chunk_of(const uint8_t *p, size_t n) {
    size_t at = 0;

    while (n - at >= PD_RECORD_HEADER_SIZE) {
        uint32_t size = pd_record_at(p + at, false).size;

        if (size < PD_RECORD_HEADER_SIZE || size > n - at || at + size > SEGMENT_FRAME_RAW_MAX)
            break;
        at += size;
    }
    return at;
}

/* Writes a chunk to its file and adds it to the index. `span`: the chunk holds samples with these
 * times. */
static int segment_put(Segment *s, uint32_t file, const uint8_t *p, size_t n, ManifestFrame by,
                       const PdSpan *span) {
    ManifestFrame *frame = &s->open[file];
    int r = 0;

    if (frame->raw > 0 && (frame->kind != by.kind || frame->raw + n > SEGMENT_FRAME_RAW_MAX))
        r = segment_end_frame(s, file);
    by.offset = pd_writer_file_offset(s->writer, file);
    if (r == 0)
        r = span ? pd_writer_write_samples(s->writer, file, p, n, span)
                 : pd_writer_write(s->writer, file, p, n);
    if (r < 0)
        return r;
    if (by.last_ns == 0)
        segment_find_times(s->plan->events, p, n, &by.first_ns, &by.last_ns);
    by.file = file;
    by.raw = n;
    if (frame->raw == 0) {
        *frame = by;
        return 0;
    }
    frame->raw += n;
    if (by.last_ns > 0) {
        frame->first_ns = frame->last_ns ? MIN(frame->first_ns, by.first_ns) : by.first_ns;
        frame->last_ns = MAX(frame->last_ns, by.last_ns);
    }
    return 0;
}

int segment_write(Segment *s, const StoreBatch *batch, size_t *done) {
    bool samples = batch->kind == STORE_SAMPLES;
    Bytes records = store_batch_bytes(batch);
    uint32_t file = s->plan->n_files > 0 && samples ? 1 + batch->cpu % s->plan->n_files : 0;
    ManifestFrame by = {
        .kind = batch->kind, .first_ns = batch->first_ns, .last_ns = batch->last_ns};

    disk_touch(__func__);
    /* The usual case: everything fits into one frame, and the sampler has checked each record. */
    if (samples && *done == 0 && records.size <= SEGMENT_FRAME_RAW_MAX) {
        int r = segment_put(s, file, records.data, records.size, by,
                            &(PdSpan){batch->samples, batch->first_ns, batch->last_ns});

        if (r < 0)
            return r;
        *done = records.size;
    }
    while (*done < records.size) {
        size_t n = segment_chunk_of(records.data + *done, records.size - *done);
        int r = n == 0 ? -EBADMSG : segment_put(s, file, records.data + *done, n, by, NULL);

        if (r < 0)
            return r;
        *done += n;
    }
    manifest_add_samples(s->manifest, batch->samples, batch->first_ns, batch->last_ns);
    s->manifest->weight = s->manifest->samples * s->sample_weight;
    if (batch->samples > 0)
        manifest_add_cpu(s->manifest, batch->cpu);
    return 0;
}

static int segment_write_mark(Segment *s) {
    _cleanup_(buffer_done) Buffer mark = {};

    pd_emit_mark(&mark, PD_RECORD_FINISHED_ROUND);
    return buffer_error(&mark) ?: pd_writer_write(s->writer, 0, mark.data, mark.size);
}

/* A clock value after a step belongs to the next segment, because a segment has a single
 * CLOCK_DATA. */
int segment_note_clock(Segment *s, const ClockAnchor *clock, bool always) {
    const Manifest *m = s->manifest;

    if (!clock)
        return 0;
    if (m->n_anchors > 0 && clock_anchor_moved(&m->anchors[0], clock, CLOCK_STEP_NS))
        return 0;
    if (!always && m->n_anchors > 0 &&
        !clock_anchor_moved(&m->anchors[m->n_anchors - 1], clock, ANCHOR_MOVED_NS))
        return 0;
    return manifest_add_anchor(s->manifest, clock);
}

int segment_end_sweep(Segment *s, bool *marked, const ClockAnchor *clock) {
    int r = segment_end_frames(s);

    disk_touch(__func__);
    if (r == 0 && !*marked && !s->plan->directory)
        r = segment_write_mark(s);
    if (r < 0)
        return r;
    if (!*marked)
        (void)segment_note_clock(s, clock, false);
    *marked = true;
    r = pd_writer_flush(s->writer);
    for (uint32_t file = 0; r == 0 && file <= s->plan->n_files; file++)
        s->ends[file] = pd_writer_file_offset(s->writer, file);
    return r;
}

static int segment_sync_file(void *userdata _unused_, const char *name _unused_, int fd) {
    return fdatasync(fd) < 0 ? -errno : 0;
}

int segment_sync(Segment *s) {
    disk_touch(__func__);
    return s->plan->directory ? dirfd_each_file(s->fd, segment_sync_file, NULL)
                              : segment_sync_file(NULL, NULL, s->fd);
}

void segment_note(Segment *s, const SegmentFacts *facts) {
    Manifest *m = s->manifest;

    if (facts->lost > 0)
        (void)manifest_add_loss(m, facts->cpu, facts->cause, facts->lost);
    m->throttled_ns += facts->throttled_ns;
    m->throttles += facts->throttles;
    m->sweeps += facts->sweeps;
    m->drain_ns += facts->drain_ns;
    m->cpu_ns += facts->cpu_ns;
    m->memory_bytes = MAX(m->memory_bytes, facts->memory_bytes);
    m->inferred += facts->inferred;
    m->dropped += facts->dropped;
    store_stacks_add(&m->stacks, &facts->stacks);
    if (facts->gap && m->covered)
        (void)pd_coverage_add_gap(&m->coverage, facts->gap);
}

void segment_cover(Segment *s, uint64_t to_ns) {
    PdCoverage *coverage = &s->manifest->coverage;

    coverage->to_ns = MAX(coverage->to_ns, to_ns);
}

void segment_leave(Segment *s, PdGapReason reason, uint64_t at_ns) {
    PdCoverage *coverage = &s->manifest->coverage;

    s->manifest->after = reason;
    if (at_ns > 0)
        coverage->to_ns = MAX(coverage->from_ns, at_ns);
    pd_coverage_clip(coverage);
}

/* Skip the index: a recovery rebuilds it. */
int segment_save_coverage(Segment *s) {
    size_t n_frames = s->manifest->n_frames;
    int r;

    s->manifest->n_frames = 0;
    r = manifest_write(s->folder, &s->plan->name, s->manifest);
    s->manifest->n_frames = n_frames;
    return r;
}

bool segment_is_gone(const Segment *s) {
    struct stat st;

    return fstat(s->fd, &st) == 0 && st.st_nlink == 0;
}

const Manifest *segment_manifest(const Segment *s) {
    return s->manifest;
}

const SegmentName *segment_name(const Segment *s) {
    return &s->plan->name;
}

uint64_t segment_bytes(const Segment *s) {
    char text[SEGMENT_NAME_MAX];
    bool directory;
    uint64_t bytes;

    segment_name_print(&s->plan->name, text);
    return dirfd_measure(s->folder, text, &bytes, &directory) < 0
               ? pd_writer_stored_bytes(s->writer)
               : bytes;
}

uint64_t segment_raw_bytes(const Segment *s) {
    return pd_writer_raw_bytes(s->writer);
}

uint64_t segment_stored_bytes(const Segment *s) {
    return pd_writer_stored_bytes(s->writer);
}

SegmentPlan *segment_take_plan(Segment *s) {
    return TAKE_PTR(s->plan);
}
