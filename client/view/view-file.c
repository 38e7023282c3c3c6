/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "client/file/recording.h"
#include "client/view/view-work.h"
#include "perfdata/feature/environment.h"
#include "util/array.h"
#include "util/clock.h"

/*
 * Recordings as the source of a view. A window is by the wall clock, and samples have the clock of
 * the recorder: the features of the recording give the difference. --last counts back from the last
 * sample of all recordings, or of each if one of them does not have the time of day.
 */

typedef struct ViewClock {
    bool real_known;
    uint64_t real_offset; /* add it to a time of the recording, modulo 2^64 */
    uint64_t clock_id;
    uint64_t first_ns, last_ns; /* of samples; 0, 0: not known */
    bool coverage_known;
    PdCoverage coverage; /* of the recording */
} ViewClock;

static void view_clock_done(ViewClock *clock) {
    pd_coverage_done(&clock->coverage);
}

/* Without the feature one pass over the recording gives the times of its samples. */
static int view_file_scan_times(PdReader *reader, ViewClock *clock) {
    PdRecord record;
    PdStamp stamp;
    int r;

    clock->first_ns = UINT64_MAX;
    while ((r = pd_reader_next(reader, &record)) > 0) {
        if (record.type != PD_RECORD_SAMPLE ||
            pd_events_stamp(pd_reader_events(reader), &record, &stamp) < 0 || !stamp.has_time)
            continue;
        clock->first_ns = MIN(clock->first_ns, stamp.time);
        clock->last_ns = MAX(clock->last_ns, stamp.time);
    }
    clock->first_ns = MIN(clock->first_ns, clock->last_ns);
    return r < 0 ? r : pd_reader_rewind(reader);
}

/* `scans`: looks at all samples for their times if no feature has them. */
static int view_file_read_clock(PdReader *reader, bool scans, ViewClock *clock) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    int r = pd_environment_new(&env);

    if (r == 0)
        r = pd_environment_read_feature(env, reader, PD_FEATURE_CLOCK_DATA);
    if (r == 0)
        r = pd_environment_read_feature(env, reader, PD_FEATURE_SAMPLE_TIME);
    if (r == 0)
        r = pd_environment_read_feature(env, reader, PD_FEATURE_PROFD_COVERAGE);
    if (r < 0)
        return r;
    clock->real_known = env->has[PD_FEATURE_CLOCK_DATA];
    clock->real_offset = env->clock_data_wall_ns - env->clock_data_clockid_ns;
    clock->clock_id = env->clock_data_clockid;
    clock->first_ns = env->first_sample_time;
    clock->last_ns = env->last_sample_time;
    if (clock->last_ns == 0 && scans)
        r = view_file_scan_times(reader, clock);
    if (r == 0 && env->has[PD_FEATURE_PROFD_COVERAGE])
        r = pd_coverage_copy(&env->coverage, &clock->coverage);
    clock->coverage_known = r == 0 && env->has[PD_FEATURE_PROFD_COVERAGE];
    return r;
}

static uint64_t view_file_ns(uint64_t us) {
    uint64_t ns;

    return __builtin_mul_overflow(us, NS_PER_US, &ns) ? UINT64_MAX : ns;
}

static uint64_t view_file_time_of(const ViewClock *clock, uint64_t real_us) {
    uint64_t real_ns = view_file_ns(real_us);

    /* A time before the recorder's clock began is before all samples. */
    return (int64_t)(real_ns - clock->real_offset) < 0 ? 1 : real_ns - clock->real_offset;
}

static int view_file_set_window(ViewWork *work, const char *path, const ViewClock *clock) {
    const ViewSettings *s = work->settings;
    uint64_t since = 0, until = UINT64_MAX, span = view_file_ns(s->last.us);

    if (!s->last.set && !s->since.set && !s->until.set)
        return STATUS_OK;
    if (!s->last.set && !clock->real_known)
        return complain(STATUS_FAILED,
                        "'%s' does not have the time of day of its samples, so --since and --until "
                        "cannot be found in it; --last counts back from its last sample.",
                        recording_name(path));
    if (s->last.set)
        since = clock->last_ns > span ? clock->last_ns - span : 0;
    if (s->since.set)
        since = view_file_time_of(clock, s->since.us);
    if (s->until.set)
        until = view_file_time_of(clock, s->until.us);
    profile_builder_set_window(work->builder, since, until);
    return STATUS_OK;
}

/* Extends the window of the view by that of a recording. */
static void view_file_note_window(ViewWork *work, const ViewClock *clock) {
    const ViewSettings *s = work->settings;
    View *view = work->view;
    uint64_t since_us, until_us;

    if (!clock->real_known || clock->last_ns == 0)
        return;
    since_us = (clock->first_ns + clock->real_offset) / NS_PER_US;
    until_us = (clock->last_ns + clock->real_offset) / NS_PER_US + 1;
    if (s->last.set && until_us - since_us > s->last.us)
        since_us = until_us - s->last.us;
    if (s->since.set)
        since_us = MAX(since_us, s->since.us);
    if (s->until.set)
        until_us = MIN(until_us, s->until.us);
    /* One of several recordings may lie outside of the window. */
    if (since_us >= until_us)
        return;
    view->since_us = view->until_us > 0 ? MIN(view->since_us, since_us) : since_us;
    view->until_us = MAX(view->until_us, until_us);
}

/* Cuts what the recording says about gaps to the window. */
static int view_file_note_coverage(ViewWork *work, ViewClock *clock) {
    const ViewSettings *s = work->settings;
    PdCoverage *coverage = &clock->coverage, *slot;
    uint64_t since_ns = s->since.set ? view_file_ns(s->since.us) : 0,
             until_ns = s->until.set ? view_file_ns(s->until.us) : UINT64_MAX,
             end_ns = clock->last_ns + clock->real_offset;
    int r = 0;

    work->lacks_coverage |= !clock->coverage_known;
    if (!clock->coverage_known)
        return 0;
    if (work->n_coverages == 0) {
        work->clock_difference = clock->real_offset;
        work->clock_id = clock->clock_id;
    }
    if (clock->clock_id == work->clock_id)
        r = pd_coverage_align(coverage, clock->real_offset, work->clock_difference);
    if (r < 0)
        return r;
    if (s->last.set && clock->real_known)
        since_ns = end_ns - MIN(view_file_ns(s->last.us), end_ns);
    coverage->to_ns = MIN(coverage->to_ns, until_ns);
    coverage->from_ns = MAX(coverage->from_ns, since_ns);
    if (coverage->from_ns >= coverage->to_ns)
        return 0;
    pd_coverage_clip(coverage);
    slot = array_grow(&work->coverages, &work->n_coverages);
    if (!slot)
        return -ENOMEM;
    *slot = *coverage;
    *coverage = (PdCoverage){};
    return 0;
}

/* All at once: the files may come in any order. The time between two recordings is a gap. */
static int view_files_unite_coverage(ViewWork *work) {
    _cleanup_free_ const PdCoverage **list = calloc(work->n_coverages + 1, sizeof(*list));
    int r = list ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < work->n_coverages; i++)
        list[i] = &work->coverages[i];
    if (r == 0 && work->n_coverages > 0) {
        r = pd_coverage_unite(list, work->n_coverages, &work->view->coverage);
        work->view->coverage_known = r == 0;
    }
    return r < 0 ? complain(STATUS_FAILED, "Failed to compare what the recordings cover: %s.",
                            strerror(-r))
                 : STATUS_OK;
}

static int view_file_read(ViewWork *work, const char *path) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(view_clock_done) ViewClock clock = {};
    int r, status = recording_open(path, &reader);

    if (status != STATUS_OK)
        return status;
    r = view_file_read_clock(reader, work->settings->last.set, &clock);
    if (r == 0)
        r = profile_builder_begin(work->builder, reader);
    if (r == 0) {
        pd_reader_free(work->reader);
        work->reader = TAKE_PTR(reader);
        status = view_file_set_window(work, path, &clock);
    }
    if (status != STATUS_OK)
        return status;
    if (r == 0)
        r = view_file_note_coverage(work, &clock);
    if (r == 0)
        r = profile_builder_read(work->builder);
    if (r < 0)
        return complain(STATUS_FAILED, "Failed to read '%s': %s.", recording_name(path),
                        strerror(-r));
    view_file_note_window(work, &clock);
    work->is_partial |= recording_verdict(path, work->reader, NULL) != STATUS_OK;
    return STATUS_OK;
}

static int view_recording_span(const char *path, uint64_t *ret_since_us, uint64_t *ret_until_us) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(view_clock_done) ViewClock clock = {};
    int r = strcmp(path, "-") == 0 ? -ENODATA : 0;

    if (r == 0 && recording_open(path, &reader) != STATUS_OK)
        return -ECANCELED;
    if (r == 0)
        r = view_file_read_clock(reader, true, &clock);
    if (r == 0 && (!clock.real_known || clock.last_ns == 0))
        r = -ENODATA;
    if (r < 0)
        return r;
    *ret_since_us = (clock.first_ns + clock.real_offset) / NS_PER_US;
    *ret_until_us = (clock.last_ns + clock.real_offset) / NS_PER_US + 1;
    return 0;
}

int view_recordings_span(char **files, uint64_t *ret_since_us, uint64_t *ret_until_us) {
    uint64_t since = UINT64_MAX, until = 0, first, last;

    for (; *files; files++) {
        int r = view_recording_span(*files, &first, &last);

        if (r < 0)
            return r;
        since = MIN(since, first);
        until = MAX(until, last);
    }
    *ret_since_us = since;
    *ret_until_us = until;
    return 0;
}

/* Several recordings have one window, which ends with the last sample of all. */
static int view_files_settle_last(ViewWork *work, char **files) {
    const ViewSettings *s = work->settings;
    uint64_t since, until;
    int r = s->last.set && files[1] ? view_recordings_span(files, &since, &until) : -ENODATA;

    if (r < 0)
        return r == -ECANCELED ? STATUS_FAILED : STATUS_OK;
    work->common = *s;
    work->common.last = (OptionTimestamp){};
    work->common.since = (OptionTimestamp){.set = true, .us = until - MIN(s->last.us, until - 1)};
    work->common.until = (OptionTimestamp){.set = true, .us = until};
    work->settings = &work->common;
    return STATUS_OK;
}

int view_files_read(ViewWork *work, char **files) {
    View *view = work->view;
    int status = view_files_settle_last(work, files);

    for (; *files && status == STATUS_OK; files++)
        status = view_file_read(work, *files);
    if (status == STATUS_OK)
        status = view_files_unite_coverage(work);
    if (view->coverage_known && !work->request->ignores_gaps)
        work->is_partial |= !pd_coverage_is_whole(&view->coverage);
    view->coverage_known &= !work->lacks_coverage;
    return status;
}
