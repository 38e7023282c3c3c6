/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "perfdata/writer/encode.h"
#include "store/disk/dirfd.h"
#include "store/disk/disk.h"
#include "store/segment/segment-private.h"

/*
 * Finishes a segment in stages. Each stage may have to wait for a disk and is then repeated. The
 * manifest is written before the final name, so every segment with a final name has a manifest. The
 * header is the last write to the segment itself, so at any moment it is either recoverable or
 * complete.
 */

static int segment_seal_file(void *userdata, const char *name, int fd) {
    const Segment *s = userdata;

    if (strncmp(name, "data", 4) == 0)
        seal_give(s->context.seal, fd, name, s->context.sensitive);
    return 0;
}

/* Only the files are sealed: in a folder that belonged to others we could delete nothing later. */
static int segment_seal(Segment *s) {
    int r = s->plan->directory ? dirfd_each_file(s->fd, segment_seal_file, s) : 0;

    seal_give(s->context.seal, s->fd, "a segment", s->context.sensitive);
    return r;
}

/* Uses the clock at the beginning of the segment, which maps its samples to wall-clock time. */
static int segment_set_clock_data(Segment *s) {
    _cleanup_(buffer_done) Buffer body = {};
    const PdEnvironment clock = {
        .has = {[PD_FEATURE_CLOCK_DATA] = true},
        .clock_data_version = 1,
        .clock_data_clockid = CLOCK_MONOTONIC,
        .clock_data_clockid_ns = s->plan->clock.monotonic_ns,
        .clock_data_wall_ns = s->plan->clock.real_ns,
    };
    int r = pd_environment_write(&clock, PD_FEATURE_CLOCK_DATA, &body, false);

    return r < 0 ? r : pd_writer_set_feature(s->writer, PD_FEATURE_CLOCK_DATA, buffer_bytes(&body));
}

/* In wall-clock time, because a reader of the file alone has no other clock. */
static int segment_set_coverage(Segment *s) {
    _cleanup_(buffer_done) Buffer body = {};
    PdCoverage coverage;
    int r = manifest_real_coverage(s->manifest, &coverage);

    if (r < 0)
        return r == -ENODATA ? 0 : r;
    r = pd_encode_coverage(&body, &coverage, false);
    pd_coverage_done(&coverage);
    return r < 0 ? r
                 : pd_writer_set_feature(s->writer, PD_FEATURE_PROFD_COVERAGE, buffer_bytes(&body));
}

static int segment_set_features(Segment *s) {
    _cleanup_(buffer_done) Buffer description = {}, groups = {};
    int r =
        s->context.environment ? pd_writer_set_environment(s->writer, s->context.environment) : 0;

    pd_encode_event_desc(&description, s->plan->events, false);
    if (r == 0)
        r = buffer_error(&description);
    if (r == 0)
        r = pd_writer_set_feature(s->writer, PD_FEATURE_EVENT_DESC, buffer_bytes(&description));
    pd_encode_group_desc(&groups, s->plan->events, false);
    if (r == 0)
        r = buffer_error(&groups);
    if (r == 0 && groups.size > 0)
        r = pd_writer_set_feature(s->writer, PD_FEATURE_GROUP_DESC, buffer_bytes(&groups));
    if (r == 0 && s->plan->tracing.size > 0)
        r = pd_writer_set_feature(s->writer, PD_FEATURE_TRACING_DATA,
                                  buffer_bytes(&s->plan->tracing));
    if (r == 0)
        r = segment_set_coverage(s);
    return r == 0 ? segment_set_clock_data(s) : r;
}

static int segment_finish_writer(Segment *s) {
    int r = segment_end_frames(s);

    if (r == 0)
        r = segment_set_features(s);
    if (r == 0)
        r = pd_writer_finish(s->writer);
    s->manifest->raw_bytes = pd_writer_raw_bytes(s->writer);
    s->manifest->stored_bytes = pd_writer_stored_bytes(s->writer);
    s->manifest->unidentified = pd_writer_unidentified(s->writer);
    return r;
}

static int segment_write_manifest(Segment *s) {
    _cleanup_close_ int fd = -1;
    int r;

    s->manifest->completeness = COMPLETE;
    r = manifest_write(s->folder, &s->plan->name, s->manifest);
    if (r < 0)
        return r;
    fd = manifest_open(s->folder, &s->plan->name, s->plan->directory);
    seal_give(s->context.seal, fd, "a manifest", s->context.sensitive);
    return 0;
}

static int segment_remove_tracing(const Segment *s) {
    char text[SEGMENT_NAME_MAX];

    segment_name_beside(&s->plan->name, ".tracing", text);
    if (s->plan->tracing.size == 0)
        return 0;
    return unlinkat(s->plan->directory ? s->fd : s->folder, s->plan->directory ? "tracing" : text,
                    0) < 0 &&
                   errno != ENOENT
               ? -errno
               : 0;
}

static int segment_rename_final(Segment *s) {
    SegmentName final = s->plan->name;
    char from[SEGMENT_NAME_MAX], to[SEGMENT_NAME_MAX];
    int r;

    final.state = SEGMENT_CLOSED;
    segment_name_print(&s->plan->name, from);
    segment_name_print(&final, to);
    r = dirfd_rename(s->folder, from, to);
    if (r == 0)
        s->plan->name = final;
    return r;
}

static int segment_finish_stage(Segment *s) {
    switch (s->stage) {
    case STAGE_WRITER:
        return segment_finish_writer(s);
    case STAGE_SYNC:
        return segment_sync(s);
    case STAGE_SEAL:
        return segment_seal(s);
    case STAGE_MANIFEST:
        return segment_write_manifest(s);
    case STAGE_RENAME:
        return segment_remove_tracing(s) ?: segment_rename_final(s);
    default:
        return fsync(s->folder) < 0 ? -errno : 0;
    }
}

static int segment_drop_cache(void *userdata _unused_, const char *name _unused_, int fd) {
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return 0;
}

int segment_finish(Segment *s, const ClockAnchor *clock, bool synchronised,
                   uint64_t queue_high_bytes) {
    disk_touch(__func__);
    if (!s->ended)
        (void)segment_note_clock(s, clock, true);
    s->ended = true;
    s->manifest->synchronised = synchronised;
    s->manifest->queue_high_bytes = queue_high_bytes;
    for (; s->stage < STAGE_DONE; s->stage++) {
        int r = segment_finish_stage(s);

        if (r < 0)
            return r;
    }
    (void)(s->plan->directory ? dirfd_each_file(s->fd, segment_drop_cache, NULL)
                              : segment_drop_cache(NULL, NULL, s->fd));
    return 0;
}
