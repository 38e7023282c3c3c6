/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/snapshot/snapshot-page.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>

#include "client/compare/changed.h"
#include "client/frame/figure.h"
#include "client/remote/coverage-text.h"
#include "client/report/picture-file.h"
#include "page/page.h"
#include "util/array.h"
#include "util/text.h"

/*
 * An incident page is one file that can be mailed: what changed, facts about the host and about
 * what is missing, a heat map, stacks and tables. It is read from the running profd like every
 * view, so that profd keeps nothing for it.
 */

/* A column of the heat map is a second, a row a fiftieth of it. */
#define SNAPSHOT_BUCKET_NS 20000000ULL

enum { FACTS_MAX = 8 };

typedef struct SnapshotPage {
    View view;
    Buffer changes; /* sentences, each ended by a NUL */
    Buffer facts[FACTS_MAX];
    PageFact rows[FACTS_MAX];
    size_t n_rows;
    PageIncident incident;
} SnapshotPage;

static void snapshot_page_done(SnapshotPage *page) {
    view_done(&page->view);
    buffer_done(&page->changes);
    for (size_t i = 0; i < FACTS_MAX; i++)
        buffer_done(&page->facts[i]);
    free((void *)page->incident.changes);
}

/* The value of the next fact is written to what this returns. */
static Buffer *snapshot_page_fact(SnapshotPage *page, const char *name) {
    assert(page->n_rows < FACTS_MAX);
    page->rows[page->n_rows].name = name;
    return &page->facts[page->n_rows++];
}

static void snapshot_page_put_events(const View *view, Buffer *out) {
    const Profile *p = view->profile;
    size_t n = 0;

    for (uint32_t i = 0; i < p->n_events; i++) {
        Bytes name = view_event_name(view, i);

        if (p->events[i].samples == 0)
            continue;
        text_puts(out, n++ > 0 ? ", " : "");
        buffer_append(out, name.data, name.size);
        if (p->events[i].rate > 0)
            text_printf(out, p->events[i].by_period ? ", each %" PRIu64 "th" : " at %" PRIu64 " Hz",
                        p->events[i].rate);
    }
}

static void snapshot_page_put_missing(const View *view, Buffer *out) {
    const Profile *p = view->profile;

    if (view->coverage_known)
        coverage_describe_for_page(out, &view->coverage);
    else
        text_puts(out, "it is not known whether all of it was recorded");
    text_puts(out, p->lost == 0 ? ", none lost" : ", ");
    if (p->lost > 0) {
        figure_count(out, p->lost);
        text_puts(out, p->lost == 1 ? " sample lost" : " samples lost");
    }
    view_put_folded(view, out);
}

static void snapshot_page_facts(SnapshotPage *page) {
    const View *view = &page->view;
    struct utsname host;
    Buffer *out;

    text_puts(snapshot_page_fact(page, "Host"), view->title);
    out = snapshot_page_fact(page, "Window");
    coverage_times_for_page(out, view->since_us, view->until_us);
    text_puts(out, ", ");
    figure_span_tenths(out, view->until_us - view->since_us);
    out = snapshot_page_fact(page, "Samples");
    figure_count(out, view->profile->samples);
    snapshot_page_put_events(view, snapshot_page_fact(page, "Events"));
    snapshot_page_put_missing(view, snapshot_page_fact(page, "Completeness"));
    if (uname(&host) == 0)
        text_printf(snapshot_page_fact(page, "Kernel"), "%s %s", host.release, host.machine);
    text_printf(snapshot_page_fact(page, "CPUs"), "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    out = snapshot_page_fact(page, "Written");
    figure_moment(out, figure_now_us());
    text_puts(out, " by profctl " PROFD_VERSION);
}

/* Buffers become texts; 0 or a negative errno. */
static int snapshot_page_texts(SnapshotPage *page) {
    const char **changes = NULL;
    size_t n = 0;

    for (size_t i = 0; i < page->n_rows; i++) {
        text_putc(&page->facts[i], '\0');
        if (buffer_error(&page->facts[i]) < 0)
            return buffer_error(&page->facts[i]);
        page->rows[i].value = (const char *)page->facts[i].data;
    }
    for (size_t at = 0; at < page->changes.size;) {
        const char *text = (const char *)page->changes.data + at, **change;

        change = array_grow(&changes, &n);
        page->incident.changes = changes;
        if (!change)
            return -ENOMEM;
        *change = text;
        at += strlen(text) + 1;
    }
    page->incident.n_changes = n;
    page->incident.facts = page->rows;
    page->incident.n_facts = page->n_rows;
    return buffer_error(&page->changes);
}

static int snapshot_page_write(PictureSink sink, void *sink_arg, void *arg) {
    return page_incident(&((const SnapshotPage *)arg)->incident, sink, sink_arg);
}

static int snapshot_page_load(Context *c, const ViewSettings *settings, SnapshotPage *page) {
    static char *no_files[] = {NULL};
    const ViewRequest request = {.keys = profile_key_bit(PROFILE_TIME) |
                                         profile_key_bit(PROFILE_UNIT) |
                                         profile_key_bit(PROFILE_COMM),
                                 .bucket_ns = SNAPSHOT_BUCKET_NS,
                                 .merges_unnamed = true};
    int r, status = view_load(c, settings, no_files, &request, &page->view);

    if (!page->view.profile)
        return status;
    r = changed_sentences(c, settings, no_files, &page->changes);
    if (page->changes.size == 0) {
        text_puts(&page->changes,
                  r == STATUS_NOT_FOUND
                      ? "No samples of the same event were recorded before this window, so there "
                        "is nothing to compare it with."
                      : "What changed is not known: the comparison with the time before failed.");
        text_putc(&page->changes, '\0');
    }
    return status != STATUS_OK || r == STATUS_NOT_FOUND ? status : r;
}

int snapshot_write_page(Context *c, const ViewSettings *settings, const char *path, bool force) {
    const Picture picture = {.name = "snapshot", .suffix = ".html", .is_file_default = true};
    const PictureOptions options = {.output = path, .force = force};
    _cleanup_(snapshot_page_done) SnapshotPage page = {};
    int r, status = picture_check(c, &picture, &options);

    if (status != STATUS_OK)
        return status;
    /* Asked again when it is written; here, before a minute of work. */
    if (!force && strcmp(path, "-") != 0 && access(path, F_OK) == 0)
        return complain(STATUS_FAILED, "'%s' exists; give another name, or --force to replace it.",
                        path);
    status = snapshot_page_load(c, settings, &page);
    if (!page.view.profile)
        return status;
    snapshot_page_facts(&page);
    if (snapshot_page_texts(&page) < 0)
        return complain(STATUS_FAILED, "Failed to write the page: %s.", strerror(ENOMEM));
    page.incident.input = (PageInput){.profile = page.view.profile,
                                      .names = page.view.names,
                                      .event = picture_event(c, &page.view),
                                      .title = page.view.title,
                                      .subtitle = page.view.page_subtitle,
                                      .zone_min = page.view.zone_min};
    r = picture_write(c, &picture, &options, &page.view, snapshot_page_write, &page);
    return r != STATUS_OK ? r : status;
}
