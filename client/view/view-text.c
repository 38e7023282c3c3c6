/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "client/file/recording.h"
#include "client/frame/figure.h"
#include "client/remote/coverage-text.h"
#include "client/view/view-work.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * What is said above a view: what it shows, and one sentence with the window, the number of samples
 * and what is missing of them. Sampling gives counts, so these come first.
 */

static void view_text_put_window(Buffer *out, const View *view, bool for_page) {
    const Profile *p = view->profile;
    uint64_t since_us = view->since_us, until_us = view->until_us, span_us;

    if (until_us == 0 && p->real_known && p->samples > 0) {
        since_us = (p->first_ns + p->real_offset) / NS_PER_US;
        until_us = (p->last_ns + p->real_offset) / NS_PER_US;
    }
    span_us = until_us - since_us;
    if (until_us > 0) {
        (for_page ? coverage_times_for_page : coverage_times)(out, since_us, until_us);
        text_puts(out, " (");
        figure_span_tenths(out, span_us);
        text_puts(out, "): ");
    } else if (p->first_ns < p->last_ns) {
        figure_span_tenths(out, (p->last_ns - p->first_ns) / NS_PER_US);
        text_puts(out, ": ");
    }
}

static void view_text_put_rate(Buffer *out, const ProfileEvent *event) {
    if (event->rate == 0)
        return;
    text_puts(out, event->by_period ? " each " : " at ");
    figure_count(out, event->rate);
    text_puts(out, event->by_period ? " of them" : " Hz");
}

static void view_text_put_count(Buffer *out, uint64_t n, const char *what) {
    if (n == 0)
        return;
    text_puts(out, ", ");
    figure_count(out, n);
    text_puts(out, what);
}

static void view_text_put_samples(Buffer *out, const Profile *p) {
    size_t n = 0;

    figure_count(out, p->samples);
    text_puts(out, p->samples == 1 ? " sample" : " samples");
    for (size_t i = 0; i < p->n_events; i++) {
        const ProfileEvent *event = &p->events[i];
        Bytes name = text_set_get(p->texts, event->name);

        if (event->samples == 0 && event->lost == 0)
            continue;
        text_puts(out, n++ == 0 ? " of " : ", ");
        buffer_append(out, name.data, name.size);
        view_text_put_rate(out, event);
        if (event->samples < p->samples) {
            text_puts(out, " (");
            figure_count(out, event->samples);
            view_text_put_count(out, event->lost, " lost");
            text_puts(out, ")");
        }
    }
}

void view_put_folded(const View *view, Buffer *out) {
    const Profile *p = view->profile;

    view_text_put_count(out, p->folded, " with rare stacks folded into [other]");
    if (p->folded_labels > 0) {
        view_text_put_count(out, p->folded_labels, " of rare groups folded without ");
        text_puts(out, p->keys & profile_key_bit(PROFILE_TIME) ? "their values and times"
                                                               : "their values");
    }
    if ((p->keys & profile_key_bit(PROFILE_TIME)) && p->bucket_ns > view->bucket_ns) {
        text_puts(out, ", times joined to spans of ");
        figure_span(out, p->bucket_ns / NS_PER_US);
    }
}

/* Which samples would have passed the filters is not known of lost ones, so no share is made. */
void view_remark_lost(const Context *c, const View *view, uint32_t event) {
    const Profile *p = view->profile;
    const ProfileEvent *one = event == PROFILE_NONE ? NULL : &p->events[event];
    uint64_t lost = one ? one->lost : p->lost, kept = one ? one->samples : p->samples;
    _cleanup_(buffer_done) Buffer text = {};

    if (lost == 0 || c->quiet)
        return;
    figure_count(&text, lost);
    text_puts(&text, lost == 1 ? " sample" : " samples");
    if (one && p->n_events > 1) {
        text_puts(&text, " of ");
        text_escape(&text, text_set_get(p->texts, one->name));
    }
    text_puts(&text, lost == 1 ? " was" : " were");
    text_puts(&text, " lost when this was recorded, beside the ");
    figure_count(&text, kept);
    text_puts(&text, kept == 1 ? " that is here." : " that are here.");
    remark_buffer(&text);
}

static void view_text_put_sentence(Buffer *out, const View *view, bool for_page) {
    const Profile *p = view->profile;

    view_text_put_window(out, view, for_page);
    view_text_put_samples(out, p);
    view_text_put_count(out, p->lost, " lost");
    view_text_put_count(out, p->left_out, " left out by filters");
    view_put_folded(view, out);
    view_text_put_count(out, p->broken, " records that could not be read");
    if (view->coverage_known) {
        text_puts(out, ", ");
        (for_page ? coverage_describe_for_page : coverage_describe)(out, &view->coverage);
    }
    text_putc(out, '\0');
}

static void view_text_put_files(Buffer *out, char **files) {
    for (char **file = files; *file; file++) {
        const char *name = recording_name(*file), *slash = strrchr(name, '/');

        text_puts(out, file > files ? ", " : "");
        text_puts(out, slash && slash[1] ? slash + 1 : name);
    }
}

int view_text_make(ViewWork *work, char **files) {
    View *view = work->view;
    Buffer title = {}, subtitle = {}, page_subtitle = {};
    const Profile *p = view->profile;
    int r;

    view_text_put_sentence(&subtitle, view, false);
    view_text_put_sentence(&page_subtitle, view, true);
    if (!view->title) {
        view_text_put_files(&title, files);
        text_putc(&title, '\0');
    }
    r = buffer_error(&subtitle) ?: buffer_error(&page_subtitle) ?: buffer_error(&title);
    if (r < 0) {
        buffer_done(&title);
        buffer_done(&subtitle);
        buffer_done(&page_subtitle);
        return r;
    }
    view->subtitle = (char *)subtitle.data;
    view->page_subtitle = (char *)page_subtitle.data;
    if (p->real_known)
        view->zone_min = figure_zone_min((p->first_ns + p->real_offset) / NS_PER_US);
    if (!view->title)
        view->title = (char *)title.data;
    return 0;
}
