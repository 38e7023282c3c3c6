/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/follow/follower-stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "perfdata/record/stream-mark.h"
#include "perfdata/writer/emit.h"
#include "perfdata/writer/encode.h"
#include "store/folder/store-private.h"

/*
 * All side-band of a segment is sent, from its begin, and samples inside the window. Each segment
 * can be read alone, and repeats the state of its processes as of a time before the end of the one
 * before. So two FINISHED_ROUNDs end a segment: a reader then has resolved all samples of it before
 * it sees the other state.
 *
 * Marks are on the clock of the samples, with what to add for the wall clock. While the machine
 * sleeps that clock stands still, so the gap of a sleep reaches back over times that it had before.
 */

enum { OUT_BYTES = 256 << 10 };

static int follower_stream_send(FollowerStream *s) {
    int r = buffer_error(&s->out);

    if (r == 0 && s->out.size > 0)
        r = s->send(s->to, buffer_bytes(&s->out));
    buffer_clear(&s->out);
    return r;
}

/* Moves what the writer wrote to the client. */
static int follower_stream_send_header(FollowerStream *s) {
    off_t size;
    int r = pd_writer_flush(s->writer);

    if (r == 0)
        r = follower_stream_send(s);
    size = lseek(s->memory, 0, SEEK_CUR);
    if (r < 0 || size <= 0)
        return r < 0 || size == 0 ? r : -errno;
    if (!buffer_reserve(&s->out, (size_t)size))
        return buffer_error(&s->out);
    if (pread(s->memory, s->out.data + s->out.size, (size_t)size, 0) != size)
        return -EIO;
    buffer_commit(&s->out, (size_t)size);
    if (ftruncate(s->memory, 0) < 0 || lseek(s->memory, 0, SEEK_SET) < 0)
        return -errno;
    return follower_stream_send(s);
}

int follower_stream_open(const FollowerStream *from, FollowerStream *s) {
    *s = *from;
    s->memory = memfd_create("profd-follow", MFD_CLOEXEC);
    follower_segment_init(&s->segment);
    if (s->memory < 0)
        return -errno;
    return pd_events_new(&s->events);
}

void follower_stream_done(FollowerStream *s) {
    if (!s->store)
        return;
    s->writer = pd_writer_free(s->writer);
    s->events = pd_events_free(s->events);
    follower_segment_done(&s->segment);
    buffer_done(&s->out);
    closep(&s->memory);
}

static int follower_stream_set_clock(FollowerStream *s, const Manifest *manifest) {
    _cleanup_(buffer_done) Buffer body = {};
    PdEnvironment environment = {.has = {[PD_FEATURE_CLOCK_DATA] = true},
                                 .clock_data_version = 1,
                                 .clock_data_clockid = CLOCK_MONOTONIC};
    int r;

    if (manifest->n_anchors == 0)
        return 0;
    environment.clock_data_clockid_ns = manifest->anchors[0].monotonic_ns;
    environment.clock_data_wall_ns = manifest->anchors[0].real_ns;
    r = pd_environment_write(&environment, PD_FEATURE_CLOCK_DATA, &body, false);
    if (r == 0)
        r = buffer_error(&body);
    return r < 0 ? r
                 : MIN(pd_writer_set_feature(s->writer, PD_FEATURE_CLOCK_DATA, buffer_bytes(&body)),
                       0);
}

static int follower_stream_new_writer(FollowerStream *s, const Manifest *manifest) {
    int r = pd_writer_new(s->memory, &(PdWriterOptions){.layout = PD_LAYOUT_PIPE}, &s->writer);

    if (r == 0 && s->store->environment)
        r = MIN(pd_writer_set_environment(s->writer, s->store->environment), 0);
    return r == 0 ? follower_stream_set_clock(s, manifest) : r;
}

/* Whether both would be written as the same bytes: the events of an open segment are those of the
 * recorder, and of a finished one those that it has on disk. 1, 0, or a negative errno. */
static int follower_stream_is_same(const PdEvent *a, const PdEvent *b) {
    uint32_t size = MAX(pd_encode_attr_size(a), pd_encode_attr_size(b));
    _cleanup_(buffer_done) Buffer bytes = {};

    pd_encode_attr(&bytes, a, size, false);
    pd_encode_attr(&bytes, b, size, false);
    if (buffer_error(&bytes))
        return -ENOMEM;
    return a->n_ids == b->n_ids && memcmp(bytes.data, bytes.data + size, size) == 0;
}

/* Ids are unique in a boot. -EBADMSG: one of them now has another attr. */
static int follower_stream_add_events(FollowerStream *s) {
    const PdEvents *events = s->segment.events;
    int r = 0;

    for (size_t i = 0; r == 0 && i < pd_events_count(events); i++) {
        const PdEvent *event = pd_events_at(events, i);
        const PdEvent *known = event->n_ids > 0 ? pd_events_by_id(s->events, event->ids[0]) : NULL;

        if (known) {
            r = follower_stream_is_same(known, event);
            if (r == 0)
                return -EBADMSG;
            r = MIN(r, 0);
            continue;
        }
        r = pd_events_copy(s->events, event);
        if (r == 0)
            r = pd_writer_add_event(s->writer, event);
    }
    return r;
}

static int follower_stream_add_header(FollowerStream *s, const FollowerState *state) {
    int r = s->writer ? 0 : follower_stream_new_writer(s, state->manifest);

    if (r == 0)
        r = follower_stream_add_events(s);
    if (r == 0 && s->segment.tracing.size > 0)
        r = MIN(pd_writer_set_feature(s->writer, PD_FEATURE_TRACING_DATA,
                                      buffer_bytes(&s->segment.tracing)),
                0);
    if (r == 0 && !s->begun)
        r = pd_writer_begin(s->writer);
    s->begun = true;
    return r == 0 ? follower_stream_send_header(s) : r;
}

static void follower_stream_mark_gap(FollowerStream *s, const PdGap *gap) {
    pd_stream_mark_write(
        &s->out, &(PdStreamMark){.is_gap = true, .gap = *gap, .real_offset = s->real_offset});
}

static void follower_stream_put_gap(FollowerStream *s, PdGap gap) {
    gap.from_ns = MAX(gap.from_ns, s->since_ns);
    gap.to_ns = MIN(gap.to_ns, s->until_ns);
    if (gap.from_ns < gap.to_ns)
        follower_stream_mark_gap(s, &gap);
}

/* Modulo 2^64: the window may begin before the clock of the samples does. */
static void follower_stream_put_before(FollowerStream *s, const FollowerState *state) {
    const FollowerOptions *o = s->options;
    const FollowerBefore *before = s->before;
    uint64_t since_ns = o->position_ns > 0 ? s->since_ns + s->real_offset : o->since_ns;
    uint64_t until_ns = state->manifest->coverage.from_ns + s->real_offset;
    /* The segment that was found may be deleted before it is read. */
    bool is_first = state->name.number == before->number;

    if (o->until_ns > 0)
        until_ns = MIN(until_ns, o->until_ns);
    for (size_t i = 0; state->manifest->covered && i < before->n + !is_first; i++) {
        PdGap gap = {.to_ns = UINT64_MAX, .cpu = PD_ALL_CPUS, .reason = PD_GAP_DELETED};

        if (i < before->n)
            gap = before->gaps[i];
        gap.from_ns = MAX(gap.from_ns, since_ns);
        since_ns = gap.to_ns = MIN(gap.to_ns, until_ns);
        if (gap.from_ns >= gap.to_ns)
            continue;
        gap.from_ns -= s->real_offset;
        gap.to_ns -= s->real_offset;
        follower_stream_mark_gap(s, &gap);
    }
}

static uint64_t follower_stream_slept_ns(const Manifest *manifest) {
    return manifest->n_anchors == 0 ? UINT64_MAX : clock_anchor_slept_ns(&manifest->anchors[0]);
}

/* A sleep between the last segment and this one: the part of it that lies in the window, which is
 * compared by the wall clock. A second is more than two measurements differ. */
static void follower_stream_put_sleep(FollowerStream *s, const Manifest *manifest) {
    const FollowerOptions *o = s->options;
    uint64_t slept_ns = follower_stream_slept_ns(manifest), since_ns, until_ns;
    uint64_t at_ns = MIN(s->covered_to_ns, manifest->coverage.from_ns);

    if (slept_ns == UINT64_MAX || s->slept_ns == UINT64_MAX ||
        slept_ns < s->slept_ns + NS_PER_SECOND || strcmp(s->boot, manifest->boot) != 0)
        return;
    if (o->position_ns > 0 && at_ns <= o->position_ns)
        return;
    until_ns = at_ns + s->real_offset;
    since_ns = until_ns - MIN(until_ns, slept_ns - s->slept_ns);
    if (o->position_ns == 0)
        since_ns = MAX(since_ns, o->since_ns);
    if (o->until_ns > 0)
        until_ns = MIN(until_ns, o->until_ns);
    if (since_ns < until_ns)
        follower_stream_mark_gap(s, &(PdGap){.from_ns = since_ns - s->real_offset,
                                             .to_ns = until_ns - s->real_offset,
                                             .cpu = PD_ALL_CPUS,
                                             .reason = PD_GAP_ASLEEP});
}

/* What lies between the last segment and this one. */
static void follower_stream_put_break(FollowerStream *s, const FollowerState *state) {
    bool is_next = state->name.number == s->number + 1;

    if (!state->manifest->covered || s->covered_to_ns == 0)
        return;
    follower_stream_put_sleep(s, state->manifest);
    follower_stream_put_gap(s, (PdGap){.from_ns = s->covered_to_ns,
                                       .to_ns = state->manifest->coverage.from_ns,
                                       .cpu = PD_ALL_CPUS,
                                       .reason = is_next ? s->after : PD_GAP_DELETED});
}

static bool follower_stream_has_sent(const FollowerStream *s, const PdGap *gap) {
    for (size_t i = 0; i < s->n_gaps; i++)
        if (memcmp(&s->gaps[i], gap, sizeof(*gap)) == 0)
            return true;
    return false;
}

static void follower_stream_put_gaps(FollowerStream *s, const PdCoverage *coverage) {
    for (size_t i = 0; i < coverage->n_gaps; i++) {
        PdGap gap = {.from_ns = coverage->gaps[i].from_ns,
                     .to_ns = coverage->gaps[i].to_ns,
                     .cpu = coverage->gaps[i].cpu,
                     .reason = coverage->gaps[i].reason};

        if (gap.to_ns == PD_GAP_OPEN || follower_stream_has_sent(s, &gap))
            continue;
        follower_stream_put_gap(s, gap);
        if (s->n_gaps < ARRAY_SIZE(s->gaps))
            s->gaps[s->n_gaps++] = gap;
    }
}

static uint64_t follower_stream_until_ns(const FollowerOptions *o, const Manifest *manifest) {
    return o->until_ns > 0 ? manifest_monotonic_ns(manifest, o->until_ns) : UINT64_MAX;
}

/* Converts the window to the clock of the segment. */
static void follower_stream_set_times(FollowerStream *s, const Manifest *manifest) {
    const FollowerOptions *o = s->options;

    s->since_ns = o->position_ns > 0 ? o->position_ns
                  : o->since_ns > 0  ? manifest_monotonic_ns(manifest, o->since_ns)
                                     : 0;
    s->until_ns = follower_stream_until_ns(o, manifest);
    if (manifest->n_anchors > 0)
        s->real_offset = manifest->anchors[0].real_ns - manifest->anchors[0].monotonic_ns;
}

static void follower_stream_put_watermark(FollowerStream *s, uint64_t time) {
    time = MIN(time, s->until_ns);
    if (time <= s->watermark_ns || time < s->since_ns)
        return;
    s->watermark_ns = time;
    pd_stream_mark_write(&s->out, &(PdStreamMark){.time = time, .real_offset = s->real_offset});
}

/* Whether the clock was set between the last segment and this one of the same boot. */
static bool follower_stream_is_set(const FollowerStream *s, const Manifest *m, uint64_t before_ns) {
    return m->boot[0] != '\0' && strcmp(s->boot, m->boot) == 0 &&
           MIN(s->real_offset - before_ns, before_ns - s->real_offset) >= CLOCK_STEP_NS;
}

int follower_stream_begin(FollowerStream *s, const FollowerState *state) {
    const uint64_t since_ns = s->since_ns, until_ns = s->until_ns, real_offset = s->real_offset;
    const Manifest *m = state->manifest;
    bool is_after;
    int r;

    follower_stream_set_times(s, m);
    if (s->number > 0)
        follower_stream_put_break(s, state);
    /* Samples of neighbours may overlap by what a sweep took. */
    is_after = m->covered && m->coverage.from_ns > s->until_ns &&
               (m->samples == 0 || m->first_ns >= s->until_ns);
    if (is_after && s->number > 0) {
        bool is_set = follower_stream_is_set(s, m, real_offset);

        /* The segment may be of another boot: its clock does not have the end of the window. */
        s->since_ns = since_ns;
        s->until_ns = until_ns;
        s->real_offset = real_offset;
        if (!is_set)
            return 1;
        /* Skipped: when the clock is set back, later segments may lie in the window again. */
        s->number = state->name.number;
        s->covered_to_ns = m->coverage.to_ns;
        s->slept_ns = follower_stream_slept_ns(m);
        s->has_skipped = true;
        return 0;
    }
    if (m->sensitive && !s->options->privileged)
        return -EACCES;
    if (m->covered && s->number > 0)
        follower_stream_put_watermark(
            s, MIN(m->coverage.from_ns, m->samples > 0 ? m->first_ns : UINT64_MAX));
    r = follower_segment_open(s->store, s->options->session, state, &s->segment);
    if (r == -ENOENT || r == -ENOTDIR || r == -ESTALE || r == -EBADMSG)
        return 0;
    if (r == 0)
        r = follower_stream_add_header(s, state);
    s->directory = m->directory;
    memcpy(s->boot, m->boot, sizeof(s->boot));
    s->slept_ns = follower_stream_slept_ns(m);
    s->has_skipped = false;
    s->n_gaps = 0;
    if (r == 0 && s->number == 0)
        follower_stream_put_before(s, state);
    /* Before the samples: who cuts the stream at one of them then knows what was not recorded. */
    if (r == 0)
        follower_stream_put_gaps(s, &m->coverage);
    /* A window before all segments has their header, so that it can be read, and a gap. */
    return r == 0 && is_after ? 1 : r;
}

static bool follower_stream_is_state(uint32_t type) {
    switch (type) {
    case PD_RECORD_MMAP:
    case PD_RECORD_COMM:
    case PD_RECORD_EXIT:
    case PD_RECORD_FORK:
    case PD_RECORD_MMAP2:
    case PD_RECORD_NAMESPACES:
    case PD_RECORD_KSYMBOL:
    case PD_RECORD_BPF_EVENT:
    case PD_RECORD_CGROUP:
    case PD_RECORD_TEXT_POKE:
    case PD_RECORD_FINISHED_INIT:
    case PD_RECORD_FINISHED_ROUND:
        return true;
    default:
        return false;
    }
}

static int follower_stream_take(void *userdata, const PdRecord *record) {
    FollowerStream *s = userdata;
    PdStamp stamp;

    if (pd_events_stamp(s->segment.events, record, &stamp) < 0)
        return 0;
    if (!follower_stream_is_state(record->type) &&
        (!stamp.has_time || stamp.time < s->since_ns || stamp.time >= s->until_ns))
        return 0;
    if (record->type == PD_RECORD_FINISHED_ROUND)
        s->round_ns = s->greatest_ns;
    if (stamp.has_time)
        s->greatest_ns = MAX(s->greatest_ns, stamp.time);
    buffer_append(&s->out, record->data, record->size);
    return s->out.size >= OUT_BYTES ? follower_stream_send(s) : 0;
}

static void follower_stream_put_round(FollowerStream *s) {
    pd_emit_mark(&s->out, PD_RECORD_FINISHED_ROUND);
    s->round_ns = s->greatest_ns;
}

int follower_stream_pass(FollowerStream *s, const FollowerState *state) {
    const PdCoverage *coverage = &state->manifest->coverage;
    int r;

    /* The times of a segment that is not sent count no more. */
    if (!s->segment.events)
        return state->is_open &&
               state->floor_ns >= follower_stream_until_ns(s->options, state->manifest);
    follower_stream_set_times(s, state->manifest);
    s->after = state->manifest->completeness == RECOVERED ? PD_GAP_DOWN : state->manifest->after;
    s->covered_to_ns = state->manifest->covered ? coverage->to_ns : 0;
    if (state->is_open)
        memcpy(s->segment.ends, state->ends, sizeof(s->segment.ends));
    r = follower_segment_read(&s->segment, follower_stream_take, s);
    /* Damage ends a segment early; what was readable was sent. */
    if (r < 0 && r != -EBADMSG)
        return r;
    if (r == -EBADMSG)
        follower_stream_put_gap(s, (PdGap){s->greatest_ns, MAX(coverage->to_ns, s->greatest_ns),
                                           PD_ALL_CPUS, PD_GAP_DAMAGED});
    follower_stream_put_gaps(s, coverage);
    if (s->directory && state->is_open && state->floor_ns >= s->round_ns)
        follower_stream_put_round(s);
    if (state->is_open)
        follower_stream_put_watermark(s, state->floor_ns);
    r = follower_stream_send(s);
    return r == 0 && state->is_open && state->floor_ns >= s->until_ns ? 1 : r;
}

int follower_stream_finish_segment(FollowerStream *s) {
    return s->segment.events ? follower_segment_finish(&s->segment) : 0;
}

int follower_stream_end_segment(FollowerStream *s, uint64_t number) {
    if (s->segment.events) {
        s->number = number;
        follower_stream_put_round(s);
        follower_stream_put_round(s);
    }
    follower_segment_done(&s->segment);
    return follower_stream_send(s);
}

int follower_stream_finish(FollowerStream *s) {
    if (s->number > 0 && !s->has_skipped && s->covered_to_ns > 0 &&
        s->covered_to_ns < s->until_ns && s->watermark_ns < s->until_ns)
        follower_stream_put_gap(s, (PdGap){s->covered_to_ns, s->until_ns, PD_ALL_CPUS, s->after});
    follower_stream_put_watermark(s, s->until_ns);
    return follower_stream_send(s);
}
