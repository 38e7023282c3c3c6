/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "store/segment/segment-private.h"
#include "store/writer/session-private.h"

/*
 * The open segment as readers see it. Only its writer touches the segment itself; after each sweep
 * the writer adds what is new to the view. No function here waits for a disk.
 */

void segment_view_done(SegmentView *view) {
    view->manifest = manifest_free(view->manifest);
    view->events = pd_events_free(view->events);
    closep(&view->fd);
    buffer_done(&view->tracing);
}

int segment_view_copy_events(const PdEvents *from, PdEvents **ret) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    int r = pd_events_new(&events);

    for (size_t i = 0; r == 0 && i < pd_events_count(from); i++)
        r = pd_events_copy(events, pd_events_at(from, i));
    if (r == 0)
        *ret = TAKE_PTR(events);
    return r;
}

static int view_copy_rest(SegmentView *to, int fd, const PdEvents *events, Bytes tracing) {
    int r = manifest_new(&to->manifest);

    if (r == 0)
        r = segment_view_copy_events(events, &to->events);
    buffer_append(&to->tracing, tracing.data, tracing.size);
    if (r == 0)
        r = buffer_error(&to->tracing);
    if (r < 0)
        return r;
    to->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return to->fd < 0 ? -errno : 0;
}

SegmentView segment_view_take(SegmentView *view) {
    SegmentView taken = *view;

    *view = (SegmentView){.fd = -1};
    return taken;
}

int segment_view_follow(SegmentView *view, const Segment *segment, SegmentView *ret_old) {
    int r = 0;

    if (!segment || (view->manifest && view->manifest->sequence != segment->manifest->sequence))
        *ret_old = segment_view_take(view);
    if (!segment)
        return 0;
    if (!view->manifest) {
        view->floor_ns = 0;
        view->name = segment->plan->name;
        r = view_copy_rest(view, segment->fd, segment->plan->events,
                           buffer_bytes(&segment->plan->tracing));
    }
    if (r == 0)
        r = manifest_follow(view->manifest, segment->manifest);
    if (r == 0)
        view->manifest->raw_bytes = pd_writer_raw_bytes(segment->writer);
    memcpy(view->ends, segment->ends, sizeof(view->ends));
    view->n_files = segment->plan->n_files;
    if (r < 0)
        segment_view_done(view);
    return r;
}

int segment_view_copy(const SegmentView *view, SegmentView *ret) {
    int r;

    *ret = (SegmentView){.fd = -1, .name = view->name};
    if (!view->manifest)
        return -ENOENT;
    r = view_copy_rest(ret, view->fd, view->events, buffer_bytes(&view->tracing));
    if (r == 0)
        r = manifest_follow(ret->manifest, view->manifest);
    if (r < 0)
        segment_view_done(ret);
    return r;
}
