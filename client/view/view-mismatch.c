/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "client/file/recording.h"
#include "client/remote/coverage-text.h"
#include "client/remote/remote-follow.h"
#include "client/view/view-work.h"
#include "perfdata/order/order.h"
#include "util/text.h"

/*
 * Explains why a view has no sample. Only then the source is read a second time, through a
 * Selector, which collects the names that may have been meant.
 */

static int view_mismatch_scan_file(ViewWork *work, const char *path) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(pd_order_freep) PdOrder *order = NULL;
    PdRecord record;
    PdStamp stamp;
    int r = recording_open(path, &reader) == STATUS_OK ? 0 : -EIO;

    if (r == 0)
        r = pd_order_new(reader, NULL, &order);
    while (r == 0 && (r = pd_order_next(order, &record, &stamp)) > 0) {
        r = selector_feed(&work->selector, &record, &stamp);
        if (r == 0 && record.type == PD_RECORD_SAMPLE)
            (void)selector_wants(&work->selector, &record, &stamp);
    }
    return r;
}

static int view_mismatch_scan_live(ViewWork *work) {
    FollowOptions request = {.session = work->settings->session,
                             .since_us = work->view->since_us,
                             .until_us = work->view->until_us};
    _cleanup_(follow_freep) Follow *follow = NULL;
    FollowItem item;
    int r = remote_follow(work->context, &request, false, &follow) == STATUS_OK ? 0 : -EIO;

    while (r == 0) {
        r = follow_next(follow, &item);
        if (r < 0 || item.what == FOLLOW_END)
            break;
        if (item.what != FOLLOW_RECORD)
            continue;
        r = selector_feed(&work->selector, &item.record, &item.stamp);
        if (r == 0 && item.record.type == PD_RECORD_SAMPLE)
            (void)selector_wants(&work->selector, &item.record, &item.stamp);
    }
    return r;
}

void view_mismatch_put_place(Buffer *out, const ViewWork *work, char **files) {
    if (*files && !files[1]) {
        text_puts(out, " in '");
        text_escape_str(out, recording_name(*files));
        text_puts(out, "'");
    } else if (*files) {
        text_puts(out, " in these recordings");
    } else {
        text_puts(out, " from ");
        coverage_times(out, work->view->since_us, work->view->until_us);
    }
}

static bool view_mismatch_has_event(const ViewWork *work, const PdEvents *events) {
    const OptionWords *words = &work->settings->events;

    for (size_t i = 0; i < pd_events_count(events); i++)
        for (size_t k = 0; k < words->n; k++)
            if (recording_event_matches(words->items[k], pd_events_at(events, i)->name))
                return true;
    return words->n == 0;
}

/* An event of another name: the sentence has those that there are. */
static void view_mismatch_put_events(Buffer *out, const PdEvents *events) {
    enum { SHOWN_MAX = 16 };
    size_t n = pd_events_count(events);

    text_puts(out, n == 0 ? "" : "; the events are ");
    for (size_t i = 0; i < n && i < SHOWN_MAX; i++) {
        text_puts(out, i == 0 ? "" : ", ");
        text_escape_str(out, pd_events_at(events, i)->name);
    }
}

static void view_mismatch_put_window(Buffer *out, const ViewWork *work) {
    const ViewSettings *s = work->settings;

    if (work->view->coverage_known && work->view->is_live) {
        text_puts(out, ": ");
        coverage_describe(out, &work->view->coverage);
    } else if (s->last.set || s->since.set || s->until.set) {
        text_puts(out, " in the window");
    }
}

static void view_mismatch_put(ViewWork *work, char **files, Buffer *out) {
    const PdReader *reader = work->follow ? follow_reader(work->follow) : work->reader;
    const PdEvents *events = pd_reader_events(reader);
    bool can_scan = true;
    int r = 0;

    for (char **file = files; *file; file++)
        can_scan &= strcmp(*file, "-") != 0;
    text_puts(out, "There are no samples");
    view_mismatch_put_place(out, work, files);
    if (!view_mismatch_has_event(work, events)) {
        text_puts(out, " of such an event");
        view_mismatch_put_events(out, events);
    } else if (work->selector.options && can_scan) {
        if (!*files)
            r = view_mismatch_scan_live(work);
        for (; *files && r == 0; files++)
            r = view_mismatch_scan_file(work, *files);
        if (r == 0 && !work->selector.any) {
            text_puts(out, " that ");
            selector_put_mismatch(&work->selector, out);
            return;
        }
        text_puts(out, " that match");
        view_mismatch_put_window(out, work);
    } else {
        view_mismatch_put_window(out, work);
    }
    text_putc(out, '.');
}

int view_mismatch_complain(ViewWork *work, char **files) {
    _cleanup_(buffer_done) Buffer text = {};

    view_mismatch_put(work, files, &text);
    text_putc(&text, '\0');
    if (buffer_error(&text))
        return complain(STATUS_NOT_FOUND, "There are no such samples.");
    return complain_shown(STATUS_NOT_FOUND, (const char *)text.data);
}
