/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/segment/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "perfdata/writer/emit.h"
#include "store/disk/disk.h"
#include "store/disk/place.h"
#include "store/folder/store-private.h"
#include "store/segment/segment-private.h"

/*
 * Batches in, frames out. Batches of a kind that follow each other in a sweep share a frame, up to
 * what a frame holds, since small frames compress badly; a frame never outlives its sweep and never
 * mixes kinds. Each frame is an entry of the manifest's index. In a directory side-band goes to
 * `data` and samples to data.N, by their CPU.
 */

enum { ANCHOR_MOVED_NS = 1000000 };

/* Least and greatest time that records tell of themselves; 0 and 0 when none does. */
static void find_times(const PdEvents *events, const uint8_t *p, size_t n, uint64_t *ret_first,
                       uint64_t *ret_last) {
    uint64_t first = UINT64_MAX, last = 0;

    for (size_t at = 0; at < n;) {
        PdRecord record = pd_record_at(p + at, false);
        PdStamp stamp;

        if (record.size < PD_RECORD_HEADER_SIZE || record.size > n - at)
            break;
        at += record.size;
        if (pd_events_stamp(events, &record, &stamp) < 0 || !stamp.has_time)
            continue;
        first = MIN(first, stamp.time);
        last = MAX(last, stamp.time);
    }
    *ret_first = MIN(first, last);
    *ret_last = last;
}

static int end_frame(Segment *s, uint32_t file) {
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
        int r = end_frame(s, file);

        if (r < 0)
            return r;
    }
    return 0;
}

/* As many whole records as a frame may hold; 0: what stands there is no record. */
static size_t chunk_of(const uint8_t *p, size_t n) {
    size_t at = 0;

    while (n - at >= PD_RECORD_HEADER_SIZE) {
        uint32_t size = pd_record_at(p + at, false).size;

        if (size < PD_RECORD_HEADER_SIZE || size > n - at || at + size > SEGMENT_FRAME_RAW_MAX)
            break;
        at += size;
    }
    return at;
}

/* A chunk into its file, and into the index. `span`: it holds samples, and these. */
static int put(Segment *s, uint32_t file, const uint8_t *p, size_t n, ManifestFrame by,
               const PdSpan *span) {
    ManifestFrame *frame = &s->open[file];
    int r = 0;

    if (frame->raw > 0 && (frame->kind != by.kind || frame->raw + n > SEGMENT_FRAME_RAW_MAX))
        r = end_frame(s, file);
    by.offset = pd_writer_file_offset(s->writer, file);
    if (r == 0)
        r = span ? pd_writer_write_samples(s->writer, file, p, n, span)
                 : pd_writer_write(s->writer, file, p, n);
    if (r < 0)
        return r;
    if (by.last_ns == 0)
        find_times(s->plan->events, p, n, &by.first_ns, &by.last_ns);
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
    uint32_t file = s->plan->n_files > 0 && samples ? 1 + batch->cpu % s->plan->n_files : 0;
    ManifestFrame by = {
        .kind = batch->kind, .first_ns = batch->first_ns, .last_ns = batch->last_ns};

    disk_touch(__func__);
    /* The usual case: all of it fits a frame, and whoever gathered it has looked at each record. */
    if (samples && *done == 0 && batch->records.size <= SEGMENT_FRAME_RAW_MAX) {
        int r = put(s, file, batch->records.data, batch->records.size, by,
                    &(PdSpan){batch->samples, batch->first_ns, batch->last_ns});

        if (r < 0)
            return r;
        *done = batch->records.size;
    }
    while (*done < batch->records.size) {
        size_t n = chunk_of(batch->records.data + *done, batch->records.size - *done);
        int r = n == 0 ? -EBADMSG : put(s, file, batch->records.data + *done, n, by, NULL);

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

static int write_mark(Segment *s) {
    _cleanup_(buffer_done) Buffer mark = {};

    pd_emit_mark(&mark, PD_RECORD_FINISHED_ROUND);
    return buffer_error(&mark) ?: pd_writer_write(s->writer, 0, mark.data, mark.size);
}

/* What a clock says after a step belongs to the next segment: one has one CLOCK_DATA. */
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
        r = write_mark(s);
    if (r < 0)
        return r;
    if (!*marked)
        (void)segment_note_clock(s, clock, false);
    *marked = true;
    return pd_writer_flush(s->writer);
}

static int sync_file(void *userdata _unused_, const char *name _unused_, int fd) {
    return fdatasync(fd) < 0 ? -errno : 0;
}

int segment_sync(Segment *s) {
    disk_touch(__func__);
    return s->plan->directory ? place_each_file(s->fd, sync_file, NULL)
                              : sync_file(NULL, NULL, s->fd);
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

/* Without the index, which a recovery makes anew. */
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

/* The beginning: the file, its attrs, the preamble, a first manifest. */
static int create(Segment *s) {
    char text[SEGMENT_NAME_MAX];
    int r;

    segment_name_print(&s->plan->name, text);
    if (!s->plan->directory) {
        s->fd = openat(s->folder, text, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                       PLACE_FILE_MODE);
        return s->fd < 0 ? -errno : 0;
    }
    if (mkdirat(s->folder, text, PLACE_FOLDER_MODE) < 0)
        return -errno;
    r = place_open_folder(s->folder, text, &s->fd);
    if (r < 0)
        (void)unlinkat(s->folder, text, AT_REMOVEDIR);
    return r;
}

static int begin_writer(Segment *s) {
    const SegmentPlan *plan = s->plan;
    PdWriterOptions options = {.layout = plan->directory ? PD_LAYOUT_DIRECTORY : PD_LAYOUT_FILE,
                               .zstd_level = plan->zstd_level,
                               .n_files = plan->n_files,
                               .tally = true};
    int r = pd_writer_new(s->fd, &options, &s->writer);

    for (size_t i = 0; r == 0 && i < pd_events_count(plan->events); i++)
        r = pd_writer_add_event(s->writer, pd_events_at(plan->events, i));
    return r == 0 ? pd_writer_begin(s->writer) : r;
}

static int write_preamble(Segment *s) {
    StoreBatch preamble = {.kind = STORE_SIDE_BAND, .records = s->plan->preamble};
    size_t done = 0;
    int r = segment_write(s, &preamble, &done);

    if (r == 0)
        r = segment_end_frames(s);
    return r == 0 ? pd_writer_flush(s->writer) : r;
}

/* A name may be cut, and is then ours to cut. */
static void set_text(char ret[MANIFEST_TEXT_MAX], const char *text) {
    snprintf(ret, MANIFEST_TEXT_MAX, "%s", text ? text : "");
}

static int begin_manifest(Segment *s) {
    const PdEnvironment *environment = s->context.store->environment;
    Manifest *m = s->manifest;
    int r = manifest_add_anchor(m, &s->plan->clock);

    snprintf(m->session, sizeof(m->session), "%s", s->plan->session);
    set_text(m->boot, s->context.store->boot);
    set_text(m->host, environment ? environment->hostname : NULL);
    set_text(m->recorder, environment ? environment->version : NULL);
    m->sequence = s->plan->name.number;
    m->directory = s->plan->directory;
    m->sensitive = s->context.sensitive;
    m->covered = s->plan->coverage.from_ns > 0;
    m->after = PD_GAP_DOWN;
    if (r == 0)
        r = pd_coverage_copy(&s->plan->coverage, &m->coverage);
    m->coverage.to_ns = m->coverage.from_ns;
    for (size_t i = 0; r == 0 && i < pd_events_count(s->plan->events); i++)
        r = manifest_add_event(m, pd_events_at(s->plan->events, i)->name);
    return r;
}

/* What a recovery will want to know; kept apart, since a file has no room for it yet. */
static int write_beside(Segment *s) {
    char text[SEGMENT_NAME_MAX];
    int r = manifest_write(s->folder, &s->plan->name, s->manifest);

    if (r < 0 || s->plan->tracing.size == 0)
        return r;
    segment_name_beside(&s->plan->name, ".tracing", text);
    return s->plan->directory ? place_write(s->fd, "tracing", buffer_bytes(&s->plan->tracing))
                              : place_write(s->folder, text, buffer_bytes(&s->plan->tracing));
}

static void remove_all(const Segment *s) {
    static const char *const beside[] = {".json", ".tracing"};
    char text[SEGMENT_NAME_MAX];

    segment_name_print(&s->plan->name, text);
    (void)place_remove(s->folder, text);
    for (size_t i = 0; !s->plan->directory && i < ARRAY_SIZE(beside); i++) {
        segment_name_beside(&s->plan->name, beside[i], text);
        (void)unlinkat(s->folder, text, 0);
    }
}

int segment_open(int folder, SegmentPlan **plan, const SegmentContext *context, Segment **ret) {
    _cleanup_(segment_freep) Segment *s = calloc(1, sizeof(*s));
    int r;

    disk_touch(__func__);
    if (!s)
        return -ENOMEM;
    *s = (Segment){.context = *context, .fd = -1, .plan = *plan};
    s->folder = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    r = s->folder < 0 ? -errno : manifest_new(&s->manifest);
    if (r == 0)
        r = create(s);
    if (r == 0) {
        s->sample_weight = segment_sample_weight(s->plan->events);
        r = begin_writer(s);
        if (r == 0)
            r = begin_manifest(s);
        if (r == 0)
            r = write_preamble(s);
        if (r == 0)
            r = write_beside(s);
        if (r < 0)
            remove_all(s);
    }
    if (r < 0) {
        s->plan = NULL;
        return r;
    }
    *plan = NULL;
    *ret = TAKE_PTR(s);
    return 0;
}

Segment *segment_free(Segment *s) {
    if (!s)
        return NULL;
    pd_writer_free(s->writer);
    manifest_free(s->manifest);
    segment_plan_free(s->plan);
    closep(&s->fd);
    closep(&s->folder);
    free(s);
    return NULL;
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
    return place_measure(s->folder, text, &bytes, &directory) < 0
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
