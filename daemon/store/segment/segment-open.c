/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/disk/dirfd.h"
#include "store/disk/disk.h"
#include "store/segment/segment-private.h"

/*
 * Begins a segment: creates its file or folder, writes the attrs, the preamble, a first manifest,
 * and the tracing data in a file of its own, which a recovery needs.
 */

static int segment_create(Segment *s) {
    char text[SEGMENT_NAME_MAX];
    int r;

    segment_name_print(&s->plan->name, text);
    if (!s->plan->directory) {
        s->fd = openat(s->folder, text, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                       DIRFD_FILE_MODE);
        return s->fd < 0 ? -errno : 0;
    }
    if (mkdirat(s->folder, text, DIRFD_FOLDER_MODE) < 0)
        return -errno;
    r = dirfd_open_folder(s->folder, text, &s->fd);
    if (r < 0)
        (void)unlinkat(s->folder, text, AT_REMOVEDIR);
    return r;
}

static int segment_begin_writer(Segment *s) {
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

static int segment_write_preamble(Segment *s) {
    StoreBatch preamble = {.kind = STORE_SIDE_BAND, .records = s->plan->preamble};
    size_t done = 0;
    int r = segment_write(s, &preamble, &done);

    if (r == 0)
        r = segment_end_frames(s);
    return r == 0 ? pd_writer_flush(s->writer) : r;
}

/* Long names are cut. */
static void segment_set_text(char ret[MANIFEST_TEXT_MAX], const char *text) {
    snprintf(ret, MANIFEST_TEXT_MAX, "%s", text ? text : "");
}

static int segment_begin_manifest(Segment *s) {
    const PdEnvironment *environment = s->context.environment;
    Manifest *m = s->manifest;
    int r = manifest_add_anchor(m, &s->plan->clock);

    snprintf(m->session, sizeof(m->session), "%s", s->plan->session);
    segment_set_text(m->boot, s->context.boot);
    segment_set_text(m->host, environment ? environment->hostname : NULL);
    segment_set_text(m->recorder, environment ? environment->version : NULL);
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

/* Writes what a recovery needs to separate files, because the segment has no place for it yet. */
static int segment_write_beside(Segment *s) {
    char text[SEGMENT_NAME_MAX];
    int r = manifest_write(s->folder, &s->plan->name, s->manifest);

    if (r < 0 || s->plan->tracing.size == 0)
        return r;
    segment_name_beside(&s->plan->name, ".tracing", text);
    return s->plan->directory ? dirfd_write(s->fd, "tracing", buffer_bytes(&s->plan->tracing))
                              : dirfd_write(s->folder, text, buffer_bytes(&s->plan->tracing));
}

static void segment_remove_all(const Segment *s) {
    static const char *const beside[] = {".json", ".tracing"};
    char text[SEGMENT_NAME_MAX];

    segment_name_print(&s->plan->name, text);
    (void)dirfd_remove(s->folder, text);
    for (size_t i = 0; !s->plan->directory && i < ARRAY_SIZE(beside); i++) {
        segment_name_beside(&s->plan->name, beside[i], text);
        (void)unlinkat(s->folder, text, 0);
    }
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
        r = segment_create(s);
    if (r == 0) {
        s->sample_weight = segment_sample_weight(s->plan->events);
        r = segment_begin_writer(s);
        if (r == 0)
            r = segment_begin_manifest(s);
        if (r == 0)
            r = segment_write_preamble(s);
        if (r == 0)
            r = segment_write_beside(s);
        if (r < 0)
            segment_remove_all(s);
    }
    if (r < 0) {
        s->plan = NULL;
        return r;
    }
    *plan = NULL;
    *ret = TAKE_PTR(s);
    return 0;
}
