/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/snapshot/snapshot-build.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "perfdata/tracing/tracing.h"
#include "store/folder/store-private.h"
#include "store/snapshot/snapshot-part.h"
#include "util/text.h"

/*
 * Reads one segment after another, oldest first. Their events are merged into one table, and
 * records are rewritten only where ids clash. The description of the host comes from the newest
 * finished segment or, if everything is in the open segment, from the recorder.
 */

static void snapshot_build_making_done(Making *m) {
    emission_free(m->emission);
    segment_replay_free(m->replay);
    pd_events_free(m->events);
    snapshot_writer_done(&m->writer);
    record_filter_done(&m->filter);
    buffer_done(&m->rewritten);
    buffer_done(&m->tracing);
    window_free(m->window);
}

/* Keeps groups whose members are still adjacent. */
static void snapshot_build_set_groups(Making *m) {
    for (size_t i = 0; i < m->window->n_sources; i++) {
        const PdEventSource *source = &m->window->sources[i];

        for (size_t k = 0; k < pd_events_count(source->events); k++) {
            uint32_t leader = pd_events_at(source->events, k)->leader, to = source->index[k];

            if (leader <= k && to - source->index[leader] == k - leader)
                pd_events_at(m->events, to)->leader = source->index[leader];
        }
    }
}

static int snapshot_build_add_tracing(Making *m, Bytes tracing) {
    _cleanup_(buffer_done) Buffer both = {};
    int r;

    if (tracing.size == 0 || bytes_equal(buffer_bytes(&m->tracing), tracing))
        return 0;
    if (m->tracing.size == 0) {
        buffer_append(&m->tracing, tracing.data, tracing.size);
        return buffer_error(&m->tracing);
    }
    r = pd_tracing_merge(buffer_bytes(&m->tracing), tracing, &both);
    if (r < 0) {
        if (r == -ENOMEM)
            return r;
        window_note_partial(
            m->window, "Segments describe tracepoints differently, the first description is used");
        return 0;
    }
    buffer_done(&m->tracing);
    m->tracing = both;
    both = (Buffer){};
    return 0;
}

/* Copies the features of a finished segment; `of_host`: also those of the host. */
static int snapshot_build_read_features(Making *m, const WindowPart *part, bool of_host) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_close_ int fd = window_open_file(part, 0);
    Bytes tracing;
    int r = fd < 0 ? fd : pd_reader_open_fd(fd, NULL, &reader, NULL);

    if (r < 0)
        return r == -EBADMSG ? 0 : r;
    (void)TAKE_FD(fd);
    r = of_host ? snapshot_writer_carry_features(&m->writer, reader) : 0;
    if (r == 0 && pd_reader_feature(reader, PD_FEATURE_TRACING_DATA, &tracing) == 0)
        r = snapshot_build_add_tracing(m, tracing);
    return r;
}

/* One finished segment per set of events is enough; `last` is the newest of all. */
static int snapshot_build_take_features(Making *m, size_t i, size_t last) {
    const WindowPart *part = &m->window->parts[i];
    bool is_new = i == 0 || m->window->parts[i - 1].source != part->source;

    if (part->view.manifest)
        return snapshot_build_add_tracing(m, buffer_bytes(&part->view.tracing));
    return is_new || i == last ? snapshot_build_read_features(m, part, i == last) : 0;
}

static size_t snapshot_build_newest_finished(const Window *w) {
    size_t i = w->n_parts;

    while (i > 0 && (w->parts[i - 1].gone || w->parts[i - 1].view.manifest))
        i--;
    return i - 1;
}

static WindowPart *snapshot_build_part_behind(Window *w, size_t i) {
    while (++i < w->n_parts && w->parts[i].gone)
        ;
    return i < w->n_parts ? &w->parts[i] : NULL;
}

static bool snapshot_build_is_forbidden(const Making *m) {
    return m->window && m->window->sensitive && !m->build->privileged;
}

static void snapshot_build_add_cpus(Making *m, const Manifest *manifest) {
    Window *w = m->window;

    m->cpus_unknown |= !manifest->covered;
    for (size_t i = 0; i < PD_COVERAGE_WORDS_MAX; i++)
        w->coverage.cpus[i] |= manifest->coverage.cpus[i];
}

static int snapshot_build_take_part(Making *m, size_t i, size_t last) {
    WindowPart *part = &m->window->parts[i], *next;
    int r = part->gone ? 0 : window_read_manifest(m->window, part);

    if (r < 0 || part->gone)
        return r;
    for (;;) {
        next = snapshot_build_part_behind(m->window, i);
        r = next ? window_read_manifest(m->window, next) : 0;
        if (r < 0)
            return r;
        if (!next || !next->gone)
            break;
    }
    m->window->sensitive |= window_manifest(part)->sensitive;
    snapshot_build_add_cpus(m, window_manifest(part));
    r = snapshot_build_is_forbidden(m) ? -EACCES : snapshot_build_take_features(m, i, last);
    return r == 0 ? making_take_part(m, part, next) : r;
}

static int snapshot_build_take_parts(Making *m) {
    Window *w = m->window;
    size_t last = snapshot_build_newest_finished(w);
    int r = 0;

    if (last == SIZE_MAX && m->build->store->environment)
        r = MIN(pd_writer_set_environment(m->writer.writer, m->build->store->environment), 0);
    for (size_t i = 0; r == 0 && i < w->n_parts; i++) {
        r = snapshot_build_take_part(m, i, last);
        window_part_close(&w->parts[i]);
        if (r == 0)
            r = window_open_ahead(w);
    }
    return r;
}

static int snapshot_build_begin(Making *m, int fd) {
    Window *w = m->window;
    int r = window_read_events(w);

    if (r == 0 && w->n_sources == 0)
        return -ENODATA;
    if (r == 0)
        r = pd_events_unite(w->sources, w->n_sources, &m->events);
    if (r == 0)
        r = segment_replay_new(m->build->store->memory.table_bytes, &m->replay);
    if (r < 0)
        return r;
    snapshot_build_set_groups(m);
    return snapshot_writer_open(&m->writer, fd, &m->build->output, m->events);
}

/* Uses the clock of the newest part, so that wall-clock times are those that the host had last. */
static int snapshot_build_clock_of(Window *w, ClockAnchor *ret) {
    WindowPart *part = NULL;
    const Manifest *m;
    int r;

    for (size_t i = 0; i < w->n_parts; i++)
        if (!w->parts[i].gone)
            part = &w->parts[i];
    if (!part)
        return -ENODATA;
    r = window_read_manifest(w, part);
    if (r < 0)
        return r;
    m = window_manifest(part);
    if (m->n_anchors == 0)
        return -ENODATA;
    *ret = m->anchors[0];
    return 0;
}

static void snapshot_build_count_total(Making *m) {
    uint64_t total = 0;

    for (size_t i = 0; i < m->window->n_parts; i++)
        total += m->window->parts[i].raw_bytes;
    atomic_store(&m->build->progress->total_bytes, total);
}

static int snapshot_build_finish(Making *m, const ClockAnchor *clock) {
    HistoryCounts counts = history_counts(segment_replay_history(m->replay));
    Buffer none = {};
    int r = snapshot_writer_flush(&m->writer, m->emission ? emission_pending(m->emission) : &none);

    if (counts.dropped > 0)
        window_note_partial(m->window,
                            "There were too many processes, some samples lack their names");
    window_uncover(m->window);
    if (r == 0)
        r = snapshot_writer_finish(&m->writer, m->events, buffer_bytes(&m->tracing), clock,
                                   &m->window->coverage);
    return r;
}

static void snapshot_build_fill_result(const Making *m, BuildResult *ret) {
    const Window *w = m->window;

    *ret = (BuildResult){.samples = m->samples,
                         .lost = m->lost,
                         .unidentified = pd_writer_unidentified(m->writer.writer),
                         .bytes = snapshot_writer_bytes(&m->writer),
                         .first_ns = m->writer.first_ns,
                         .last_ns = m->writer.last_ns,
                         .first_real_ns = m->first_real_ns,
                         .last_real_ns = m->last_real_ns,
                         .sensitive = w->sensitive,
                         .n_partial = w->n_partial};
    memcpy(ret->partial, w->partial, sizeof(ret->partial));
    ret->coverage = window_covered(w);
}

/* A CPU without samples was idle; a CPU that no segment recorded is an error of the request. */
static bool snapshot_build_find_absent_cpus(const Making *m, SnapshotFilter *ret) {
    const SnapshotFilter *filter = &m->build->filter;
    bool any_recorded = false;

    for (uint32_t cpu = 0; filter->by_cpu && cpu < MANIFEST_CPUS_MAX; cpu++) {
        bool recorded = pd_coverage_has_cpu(&m->window->coverage, cpu);

        any_recorded |= recorded;
        if (!recorded && selection_has_cpu(filter, cpu)) {
            ret->cpus[cpu / 8] |= (uint8_t)(1 << cpu % 8);
            ret->by_cpu = true;
        }
    }
    return any_recorded && !m->cpus_unknown && ret->by_cpu;
}

static int snapshot_build_fail_selection(const Mismatch *mismatch, const SnapshotFilter *filter,
                                         SnapshotFailure *why) {
    _cleanup_(buffer_done) Buffer text = {};

    *why = (SnapshotFailure){.error = SNAPSHOT_NO_MATCH};
    why->near = *mismatch_describe(mismatch, filter, &text);
    text_putc(&text, '\0');
    if (!buffer_error(&text))
        snprintf(why->text, sizeof(why->text), "%s", (const char *)text.data);
    return -ENODATA;
}

/* No samples from an idle host is a valid result, but filters that match no sample are probably
 * wrong. */
static int snapshot_build_check_selection(const Making *m, SnapshotFailure *why) {
    SnapshotFilter absent = {};

    if (snapshot_build_find_absent_cpus(m, &absent)) {
        return snapshot_build_fail_selection(&(Mismatch){}, &absent, why);
    }
    if (m->samples > 0 || selection_kinds(&m->build->filter) == 0)
        return 0;
    return snapshot_build_fail_selection(&m->filter.mismatch, &m->build->filter, why);
}

static int snapshot_build_make(Making *m, int fd, BuildResult *ret, SnapshotFailure *why) {
    ClockAnchor clock;
    bool has_clock;
    int r = window_new(m->build->store, &m->build->query, &m->window, why);

    if (r < 0)
        return r;
    *why = (SnapshotFailure){.error = SNAPSHOT_FAILED};
    if (snapshot_build_is_forbidden(m))
        return -EACCES;
    snapshot_build_count_total(m);
    r = snapshot_build_clock_of(m->window, &clock);
    has_clock = r == 0;
    window_note_gaps(m->window, &m->build->filter);
    r = snapshot_build_begin(m, fd);
    if (r == 0)
        r = snapshot_build_take_parts(m);
    if (r == 0)
        r = snapshot_build_check_selection(m, why);
    if (r == 0)
        r = snapshot_build_finish(m, has_clock ? &clock : NULL);
    if (r == 0)
        snapshot_build_fill_result(m, ret);
    return r;
}

static void snapshot_build_explain(const Making *m, int r, SnapshotFailure *why) {
    if (why->error != SNAPSHOT_FAILED)
        return;
    why->code = r;
    if (snapshot_build_is_forbidden(m))
        why->error = SNAPSHOT_FORBIDDEN;
    else if (r == -ECANCELED)
        why->error = SNAPSHOT_CANCELLED;
    else if (r == -ENOSPC || r == -EDQUOT)
        why->error = SNAPSHOT_DISK_FULL;
    snprintf(why->text, sizeof(why->text), "Failed to make a snapshot of session '%s': %s",
             m->build->query.session, strerror(-r));
}

int snapshot_build(const Build *build, int fd, BuildResult *ret, SnapshotFailure *ret_why) {
    _cleanup_(snapshot_build_making_done)
        Making m = {.build = build, .filter = {.selection = &build->filter}};
    int r;

    *ret_why = (SnapshotFailure){.error = SNAPSHOT_FAILED};
    r = snapshot_build_make(&m, fd, ret, ret_why);
    if (r < 0)
        snapshot_build_explain(&m, r, ret_why);
    return r;
}
