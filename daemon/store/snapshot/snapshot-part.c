/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/snapshot/snapshot-part.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/*
 * Reads the frames of a segment by its index. All side-band is read, in the order in which it was
 * written; samples are read only where they touch the window. Before the samples of a group of
 * frames are processed, all side-band that begins before their end is fed to the History, and the
 * History's floor advances to what is still to come. So memory is bounded by the activity during a
 * few frames, not by the length of the window.
 */

enum { GROUP_BYTES = 1 << 20 };

/* An index entry, and where the next one of its file and kind begins. */
typedef struct Reach {
    ManifestFrame frame;
    uint64_t end;
} Reach;

typedef struct Part {
    Making *making;
    WindowPart *window;
    const PdEventSource *source;
    PdFrames *files[PART_FILES_MAX];
    Reach *index;     /* the next two arrays are parts of it */
    Reach *side_band; /* in file order; first_ns: the minimum from there on */
    Reach *samples;   /* sorted by first time */
    size_t n_side_band, n_samples;
    size_t side_at;             /* index of the next entry to feed */
    uint64_t bound_ns;          /* no record of the following segments is older */
    uint64_t first_ns, last_ns; /* of the samples that were taken */
    bool damaged;
    Buffer packed; /* the packed bytes of the current frame */
    uint64_t packed_offset, packed_raw;
} Part;

static void snapshot_part_done(Part *p) {
    for (size_t i = 0; i < PART_FILES_MAX; i++)
        pd_frames_free(p->files[i]);
    free(p->index);
    buffer_done(&p->packed);
}

static bool snapshot_part_is_side_band(uint32_t type) {
    switch (type) {
    case PD_RECORD_MMAP:
    case PD_RECORD_COMM:
    case PD_RECORD_EXIT:
    case PD_RECORD_FORK:
    case PD_RECORD_MMAP2:
    case PD_RECORD_LOST_SAMPLES:
    case PD_RECORD_NAMESPACES:
    case PD_RECORD_KSYMBOL:
    case PD_RECORD_BPF_EVENT:
    case PD_RECORD_CGROUP:
    case PD_RECORD_TEXT_POKE:
    case PD_RECORD_FINISHED_INIT:
        return true;
    default:
        return false;
    }
}

static bool snapshot_part_is_cancelled(const Part *p) {
    return atomic_load_explicit(&p->making->build->progress->cancelled, memory_order_relaxed);
}

static int snapshot_part_note_damage(Part *p, uint64_t offset) {
    if (!p->damaged)
        window_note_partial(p->making->window, "Segment %08" PRIu64 " is damaged at byte %" PRIu64,
                            p->window->name.number, offset);
    p->damaged = p->window->damaged = true;
    return 0;
}

static int snapshot_part_open_frames(Part *p, uint32_t file) {
    int fd, r;

    if (file >= PART_FILES_MAX)
        return -EBADMSG;
    if (p->files[file])
        return 0;
    fd = window_open_file(p->window, file);
    r = fd < 0 ? fd : pd_frames_new(fd, &p->files[file]);
    if (r < 0 && fd >= 0)
        closep(&fd);
    return r;
}

/* `whole`: all of its records are wanted. */
static int snapshot_part_end_frame(Part *p, bool whole) {
    Making *m = p->making;
    int r = 0;

    if (p->packed.size > 0)
        r = snapshot_writer_end_frame(&m->writer, emission_pending(m->emission),
                                      buffer_bytes(&p->packed), whole ? p->packed_raw : 0);
    buffer_clear(&p->packed);
    return r;
}

/* Called before a record of samples is processed. */
static int snapshot_part_follow_frame(Part *p, const PdFrames *frames, const PdRecord *record) {
    Bytes packed = pd_frames_packed(frames);
    int r = 0;

    if (packed.size == 0 || record->offset != p->packed_offset)
        r = snapshot_part_end_frame(p, true);
    if (r < 0 || packed.size == 0)
        return r;
    if (p->packed.size == 0) {
        buffer_append(&p->packed, packed.data, packed.size);
        p->packed_offset = record->offset;
        p->packed_raw = 0;
        snapshot_writer_begin_frame(&p->making->writer);
    }
    p->packed_raw += record->size;
    return buffer_error(&p->packed);
}

/* An entry that ends in the middle of a frame does not include all of it. */
static int snapshot_part_leave_frame(Part *p, PdFrames *frames) {
    int spent = pd_frames_is_spent(frames), r = snapshot_part_end_frame(p, spent == 1);

    return r == 0 ? MIN(spent, 0) : r;
}

typedef int (*TakeRecord)(Part *p, const PdRecord *record, const PdStamp *stamp);

/* Reads an entry. It may stand for several frames with frames of the other kind in between.
 * Whatever size it claims, it ends where the next one begins, so that nothing is read twice. */
static int snapshot_part_read_entry(Part *p, const Reach *reach, TakeRecord take) {
    const ManifestFrame *entry = &reach->frame;
    bool follow = entry->kind == STORE_SAMPLES && p->making->writer.options.keep_frames &&
                  !p->source->changes;
    const PdEvents *events = p->source->events;
    uint64_t left = entry->raw;
    PdFrames *frames;
    int r = snapshot_part_open_frames(p, entry->file);

    if (r == -ENOENT || r == -EBADMSG)
        return snapshot_part_note_damage(p, entry->offset);
    if (r < 0)
        return r;
    frames = p->files[entry->file];
    pd_frames_seek(frames, entry->offset, reach->end);
    while (left > 0) {
        PdRecord record;
        PdStamp stamp;

        r = pd_frames_next(frames, &record);
        /* -EINVAL comes from an offset that no file can have. */
        if (r == 0 || r == -EBADMSG || r == -EINVAL)
            return snapshot_part_end_frame(p, false) ?: snapshot_part_note_damage(p, entry->offset);
        if (r > 0)
            r = follow ? snapshot_part_follow_frame(p, frames, &record) : 0;
        if (r < 0)
            return r;
        if (record.type == PD_RECORD_FINISHED_ROUND ||
            snapshot_part_is_side_band(record.type) != (entry->kind == STORE_SIDE_BAND))
            continue;
        left -= MIN(left, (uint64_t)record.size);
        if (pd_events_stamp(events, &record, &stamp) < 0)
            continue;
        r = take(p, &record, &stamp);
        if (r < 0)
            return r;
    }
    r = follow ? snapshot_part_leave_frame(p, frames) : 0;
    if (r < 0)
        return r == -EBADMSG ? snapshot_part_note_damage(p, entry->offset) : r;
    atomic_fetch_add_explicit(&p->making->build->progress->done_bytes, entry->raw,
                              memory_order_relaxed);
    return 0;
}

static bool snapshot_part_is_inside(const Part *p, uint64_t time) {
    return time >= p->window->since_ns && time < p->window->until_ns;
}

/* Returns the record with the ids of the result. */
static int snapshot_part_rewrite(Part *p, const PdRecord *record, const PdStamp *stamp,
                                 PdRecord *ret) {
    Buffer *to = &p->making->rewritten;
    int r;

    *ret = *record;
    if (!p->source->changes)
        return 1;
    buffer_clear(to);
    r = pd_rewriter_record(p->source->rewriter, record, stamp, to);
    if (r <= 0)
        return r == -EBADMSG || r == -EMSGSIZE ? 0 : r;
    ret->data = to->data;
    ret->size = (uint32_t)to->size;
    return 1;
}

static int snapshot_part_take_lost(Part *p, const PdRecord *record, const PdStamp *stamp) {
    PdBody body;
    PdRecord made;
    int r;

    if (!stamp->has_time || !snapshot_part_is_inside(p, stamp->time) ||
        !record_filter_accepts_cpu(&p->making->filter, stamp) ||
        pd_record_parse(record, stamp->event, &body) < 0)
        return 0;
    r = snapshot_part_rewrite(p, record, stamp, &made);
    if (r <= 0)
        return r;
    p->making->lost += body.lost.lost;
    return snapshot_writer_add_plain(&p->making->writer, &made, stamp->time);
}

static int snapshot_part_take_side_band(Part *p, const PdRecord *record, const PdStamp *stamp) {
    Making *m = p->making;
    PdBody body;
    int r;

    if (record->type == PD_RECORD_LOST_SAMPLES)
        return snapshot_part_take_lost(p, record, stamp);
    if (!m->has_trailer && stamp->event) {
        m->trailer = (PdTrailer){.sample_type = stamp->event->attr.sample_type,
                                 .id = pd_rewriter_id(p->source->rewriter, stamp->id)};
        m->has_trailer = true;
    }
    if (record->type == PD_RECORD_CGROUP &&
        m->build->filter.n_cgroups + m->build->filter.n_units > 0 &&
        pd_record_parse(record, stamp->event, &body) == 0) {
        r = record_filter_add_cgroup(&m->filter, &body.cgroup);
        if (r < 0)
            return r;
    }
    r = segment_replay_feed(m->replay, record, stamp);
    return r == -EBADMSG ? 0 : r;
}

static int snapshot_part_take_sample(Part *p, const PdRecord *record, const PdStamp *stamp) {
    Making *m = p->making;
    uint64_t cgroup = 0;
    PdRecord made;
    int r;

    if (!stamp->event || !stamp->has_time || !snapshot_part_is_inside(p, stamp->time))
        return 0;
    if (record->type == PD_RECORD_SAMPLE) {
        cgroup = pd_sample_cgroup(record, stamp->event);
        if (!record_filter_accepts(&m->filter, segment_replay_history(m->replay), stamp, cgroup))
            return 0;
        r = emission_need(m->emission, stamp->pid, stamp->tid, stamp->time, cgroup);
        if (r < 0)
            return r;
        p->first_ns = p->last_ns ? MIN(p->first_ns, stamp->time) : stamp->time;
        p->last_ns = MAX(p->last_ns, stamp->time);
        m->samples++;
    } else if (record_filter_has_processes(&m->filter) ||
               !record_filter_accepts_cpu(&m->filter, stamp)) {
        return 0;
    }
    r = snapshot_part_rewrite(p, record, stamp, &made);
    return r <= 0 ? r
                  : snapshot_writer_add(&m->writer, emission_pending(m->emission), &made, stamp);
}

static uint64_t snapshot_part_next_side_band(const Part *p) {
    return p->side_at < p->n_side_band ? p->side_band[p->side_at].frame.first_ns : UINT64_MAX;
}

/* The smallest time of what is still to come in this and the following segments; `sample_ns` is
 * that of this segment's samples. */
static uint64_t snapshot_part_least_to_come(const Part *p, uint64_t sample_ns) {
    uint64_t least = MIN(snapshot_part_next_side_band(p), p->bound_ns);

    sample_ns = MAX(sample_ns, p->window->since_ns);
    return MIN(least, sample_ns);
}

static int snapshot_part_feed_next(Part *p, uint64_t sample_ns) {
    const Reach *reach = &p->side_band[p->side_at];
    Making *m = p->making;
    int r = snapshot_part_is_cancelled(p)
                ? -ECANCELED
                : snapshot_part_read_entry(p, reach, snapshot_part_take_side_band);

    if (r < 0)
        return r;
    p->side_at++;
    /* Records of the next frame may belong before some of this frame. */
    r = segment_replay_settle(m->replay, MAX(snapshot_part_next_side_band(p), 1ULL) - 1);
    m->writer.greatest_ns = MAX(m->writer.greatest_ns, reach->frame.last_ns);
    segment_replay_set_floor(m->replay, snapshot_part_least_to_come(p, sample_ns));
    return r;
}

/* Feeds side-band that begins at or before `until_ns`; the samples to come begin at sample_ns. */
static int snapshot_part_feed_until(Part *p, uint64_t until_ns, uint64_t sample_ns) {
    int r = 0;

    while (r == 0 && p->side_at < p->n_side_band && snapshot_part_next_side_band(p) <= until_ns)
        r = snapshot_part_feed_next(p, sample_ns);
    return r;
}

/* Called with the first samples: from here on the History emits to the snapshot. */
static int snapshot_part_begin_emission(Part *p) {
    Making *m = p->making;
    const PdEvent *event = pd_events_at(m->events, 0);
    _cleanup_(buffer_done) Buffer preamble = {};
    int r;

    if (m->emission)
        return 0;
    if (!m->has_trailer)
        m->trailer = (PdTrailer){.sample_type = event->attr.sample_type,
                                 .id = event->n_ids > 0 ? event->ids[0] : 0};
    r = emission_new(segment_replay_history(m->replay), &m->trailer, &m->emission);
    if (r < 0)
        return r;
    /* Segments of sessions without stacks contain no data mappings. */
    emission_set_data(m->emission);
    r = emission_preamble(m->emission, &preamble);
    pd_emit_mark(&preamble, PD_RECORD_FINISHED_INIT);
    return r < 0 ? r : snapshot_writer_flush(&m->writer, &preamble);
}

static int snapshot_part_take_group(Part *p, size_t from, size_t to) {
    Making *m = p->making;
    uint64_t first = p->samples[from].frame.first_ns, last = 0, after;
    int r = 0;

    for (size_t i = from; i < to; i++)
        last = MAX(last, p->samples[i].frame.last_ns);
    r = snapshot_part_feed_until(p, last, first);
    segment_replay_set_floor(m->replay, snapshot_part_least_to_come(p, first));
    if (r == 0)
        r = snapshot_part_begin_emission(p);
    for (size_t i = from; r == 0 && i < to; i++)
        r = snapshot_part_is_cancelled(p)
                ? -ECANCELED
                : snapshot_part_read_entry(p, &p->samples[i], snapshot_part_take_sample);
    if (r < 0)
        return r;
    after = to < p->n_samples ? p->samples[to].frame.first_ns : UINT64_MAX;
    after = MIN(snapshot_part_least_to_come(p, after),
                history_floor(segment_replay_history(m->replay)));
    r = snapshot_writer_end_group(&m->writer, emission_pending(m->emission), after);
    if (r == 0)
        r = m->build->on_bytes(m->build->userdata, snapshot_writer_bytes(&m->writer));
    m->build->on_progress(m->build->userdata);
    return r;
}

static int snapshot_part_take_samples(Part *p) {
    int r = 0;

    for (size_t from = 0; r == 0 && from < p->n_samples;) {
        uint64_t raw = p->samples[from].frame.raw;
        size_t to = from + 1;

        while (to < p->n_samples && raw + p->samples[to].frame.raw <= GROUP_BYTES)
            raw += p->samples[to++].frame.raw;
        r = snapshot_part_take_group(p, from, to);
        from = to;
    }
    return r;
}

static int snapshot_part_by_offset(const void *a, const void *b) {
    const ManifestFrame *x = &((const Reach *)a)->frame, *y = &((const Reach *)b)->frame;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int snapshot_part_by_time(const void *a, const void *b) {
    const ManifestFrame *x = &((const Reach *)a)->frame, *y = &((const Reach *)b)->frame;

    if (x->first_ns != y->first_ns)
        return x->first_ns < y->first_ns ? -1 : 1;
    return snapshot_part_by_offset(a, b);
}

/* Collects the whole index in file order. */
static int snapshot_part_reach_out(const Manifest *m, Reach **ret) {
    Reach *all = calloc(m->n_frames + 1, sizeof(*all));

    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < m->n_frames; i++)
        all[i].frame = m->frames[i];
    qsort(all, m->n_frames, sizeof(*all), snapshot_part_by_offset);
    for (size_t i = 0; i < m->n_frames; i++) {
        const ManifestFrame *this = &all[i].frame, *next = &all[i + 1].frame;
        bool goes_on = i + 1 < m->n_frames && next->kind == this->kind && next->file == this->file;

        all[i].end = goes_on ? next->offset : UINT64_MAX;
    }
    *ret = all;
    return 0;
}

static int snapshot_part_sort_frames(Part *p, const Manifest *m) {
    uint64_t raw = 0;
    int r = snapshot_part_reach_out(m, &p->index);

    if (r < 0)
        return r;
    p->side_band = p->index;
    while (p->n_side_band < m->n_frames && p->index[p->n_side_band].frame.kind == STORE_SIDE_BAND)
        p->n_side_band++;
    p->samples = p->index + p->n_side_band;
    for (size_t i = p->n_side_band; i < m->n_frames; i++) {
        const ManifestFrame *frame = &p->index[i].frame;

        if (frame->last_ns >= p->window->since_ns && frame->first_ns < p->window->until_ns)
            p->samples[p->n_samples++] = p->index[i];
        else
            raw += frame->raw;
    }
    /* These bytes were counted in the total before it was known which are wanted. */
    atomic_fetch_add_explicit(&p->making->build->progress->done_bytes, raw, memory_order_relaxed);
    for (size_t i = p->n_side_band; i > 1; i--)
        p->side_band[i - 2].frame.first_ns =
            MIN(p->side_band[i - 2].frame.first_ns, p->side_band[i - 1].frame.first_ns);
    qsort(p->samples, p->n_samples, sizeof(*p->samples), snapshot_part_by_time);
    return 0;
}

/* A lower bound of where the part's records begin, without the preamble, whose times mean
 * nothing. */
static uint64_t snapshot_part_begin_of(const WindowPart *part) {
    const Manifest *m = part ? window_manifest(part) : NULL;
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; m && i < m->n_frames; i++)
        if (i > 0 && m->frames[i].last_ns > 0)
            least = MIN(least, m->frames[i].first_ns);
    return least;
}

static uint64_t snapshot_part_end_of(const Manifest *m) {
    uint64_t greatest = 0;

    for (size_t i = 0; i < m->n_frames; i++)
        greatest = MAX(greatest, m->frames[i].last_ns);
    return greatest;
}

static void snapshot_part_note_times(Part *p) {
    const Manifest *manifest = window_manifest(p->window);
    Making *m = p->making;
    uint64_t first, last;

    if (p->last_ns == 0)
        return;
    first = manifest_real_ns(manifest, p->first_ns);
    last = manifest_real_ns(manifest, p->last_ns);
    m->first_real_ns = m->last_real_ns ? MIN(m->first_real_ns, first) : first;
    m->last_real_ns = MAX(m->last_real_ns, last);
}

int making_take_part(Making *m, WindowPart *window, WindowPart *next) {
    const Manifest *manifest = window_manifest(window);
    _cleanup_(snapshot_part_done) Part p = {.making = m,
                                            .window = window,
                                            .source = &m->window->sources[window->source],
                                            .bound_ns = snapshot_part_begin_of(next)};
    /* A recorder that was killed may have had records that are not in the segment. */
    uint64_t covered = window->name.recovered ? 0 : snapshot_part_end_of(manifest);
    int r = segment_replay_begin(m->replay, p.source->events, covered);

    if (manifest->damage[0])
        window_note_partial(m->window, "Segment %08" PRIu64 " was cut: %.180s", window->name.number,
                            manifest->damage);
    if (r == 0)
        r = snapshot_part_sort_frames(&p, manifest);
    if (r == 0)
        r = snapshot_part_take_samples(&p);
    /* The next part skips what this part contained. */
    if (r == 0 && next)
        r = snapshot_part_feed_until(&p, UINT64_MAX, UINT64_MAX);
    if (r == 0)
        snapshot_part_note_times(&p);
    return r;
}
