/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "client/frame/figure.h"
#include "client/remote/remote-follow.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "client/view/view-work.h"
#include "protocol/value.h"
#include "util/clock.h"

/*
 * The running profd as the source of a view: a stream that ends now, or at the end of the window.
 * Without a window it is the last five minutes, or what there is of them, so a profd that has just
 * been started is not reported as incomplete.
 */

#define LAST_US (5 * 60 * US_PER_SECOND)

static int view_live_make_request(const ViewWork *work, FollowOptions *ret) {
    const ViewSettings *s = work->settings;
    uint64_t now = figure_now_us(), last = LAST_US;

    if (work->request->last_us > 0)
        last = work->request->last_us;
    if (s->last.set)
        last = s->last.us;
    *ret = (FollowOptions){.session = s->session, .until_us = now};
    if (s->until.set)
        ret->until_us = MIN(s->until.us, now);
    ret->since_us = ret->until_us > last ? ret->until_us - last : 1;
    if (s->since.set)
        ret->since_us = s->since.us;
    if (ret->since_us >= ret->until_us)
        return complain(STATUS_USAGE, "--since lies in the future, the window is empty.");
    return STATUS_OK;
}

int view_live_ask_host(Context *c, char **ret_binaries, char **ret_name) {
    _cleanup_json_ json_t *reply = NULL;
    const json_t *store;
    int status = remote_ask(c, "GetStatus", json_object(), &reply);

    if (status != STATUS_OK)
        return status;
    store = reply_member(reply, "store");
    if (store && asprintf(ret_binaries, "%s/binaries", reply_string(store, "path")) < 0)
        *ret_binaries = NULL;
    *ret_name = strdup(reply_string(reply, "hostname"));
    return STATUS_OK;
}

static int view_live_add_gap(PdCoverage *coverage, const PdStreamMark *mark) {
    PdGap gap = mark->gap;

    gap.from_ns += mark->real_offset;
    gap.to_ns = gap.to_ns == PD_GAP_OPEN ? coverage->to_ns : gap.to_ns + mark->real_offset;
    return pd_coverage_add_gap(coverage, &gap);
}

/* Without a window that the user asked for, it begins where something was recorded. */
static void view_live_skip_start(PdCoverage *coverage) {
    for (size_t i = 0; i < coverage->n_gaps; i++) {
        const PdGap *gap = &coverage->gaps[i];

        if (gap->cpu == PD_ALL_CPUS && gap->from_ns <= coverage->from_ns)
            coverage->from_ns = MAX(coverage->from_ns, gap->to_ns);
    }
    coverage->from_ns = MIN(coverage->from_ns, coverage->to_ns);
    pd_coverage_clip(coverage);
}

static int view_live_feed(ViewWork *work, PdCoverage *coverage) {
    FollowItem item;
    int r = profile_builder_begin(work->builder, follow_reader(work->follow));

    while (r == 0) {
        r = follow_next(work->follow, &item);
        if (r < 0 || item.what == FOLLOW_END)
            break;
        if (item.what == FOLLOW_GAP)
            r = view_live_add_gap(coverage, &item.mark);
        else
            r = profile_builder_feed(work->builder, &item.record, &item.stamp);
    }
    return r;
}

static int view_live_failed(const ViewWork *work, int r) {
    if (r == -ETIMEDOUT)
        return complain(STATUS_TIMED_OUT,
                        "profd stopped sending what it has recorded: it is stuck; 'journalctl -u "
                        "profd' shows more.");
    return complain(STATUS_FAILED, "Failed to read what profd has recorded: %s.", strerror(-r));
}

/* The stream broke off: nobody knows what was recorded after its last watermark. */
static int view_live_note_end(ViewWork *work, PdCoverage *coverage) {
    const PdGap gap = {.from_ns = MAX(follow_sent_ns(work->follow), coverage->from_ns),
                       .to_ns = coverage->to_ns,
                       .cpu = PD_ALL_CPUS,
                       .reason = PD_GAP_UNKNOWN};

    work->is_partial = true;
    (void)complain(STATUS_PARTIAL, "profd ended before it sent all of the window.");
    return gap.from_ns < gap.to_ns ? pd_coverage_add_gap(coverage, &gap) : 0;
}

int view_live_read(ViewWork *work) {
    const ViewSettings *s = work->settings;
    bool is_asked = s->last.set || s->since.set || s->until.set;
    PdCoverage *coverage = &work->view->coverage;
    FollowOptions request;
    int r, status = view_live_make_request(work, &request);

    if (status == STATUS_OK)
        status = view_live_ask_host(work->context, &work->binaries, &work->view->title);
    if (status == STATUS_OK)
        status =
            remote_follow(work->context, &request, work->request->may_be_absent, &work->follow);
    if (status != STATUS_OK)
        return status;
    *coverage = (PdCoverage){.from_ns = request.since_us * NS_PER_US,
                             .to_ns = request.until_us * NS_PER_US};
    r = view_live_feed(work, coverage);
    if (r < 0)
        return view_live_failed(work, r);
    if (!follow_is_whole(work->follow)) {
        r = view_live_note_end(work, coverage);
        if (r < 0)
            return view_live_failed(work, r);
    }
    if (is_asked)
        pd_coverage_clip(coverage);
    else
        view_live_skip_start(coverage);
    work->view->coverage_known = true;
    work->view->since_us = coverage->from_ns / NS_PER_US;
    work->view->until_us = coverage->to_ns / NS_PER_US;
    work->is_partial |= !work->request->ignores_gaps && !pd_coverage_is_whole(coverage);
    return STATUS_OK;
}
