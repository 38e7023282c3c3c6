/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/view/view-work.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/remote/coverage-text.h"
#include "client/view/view-resolver.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * Makes the profile of a view: the options become a filter, each source is read through one
 * builder, and the frames get names. What is missing is reported here, once for all views.
 */

enum { IDS_MAX = 256 };

void view_done(View *view) {
    view->profile = profile_free(view->profile);
    view->names = frame_names_free(view->names);
    pd_coverage_done(&view->coverage);
    free(view->title);
    free(view->subtitle);
    free(view->page_subtitle);
    *view = (View){};
}

void view_work_done(ViewWork *work) {
    work->builder = profile_builder_free(work->builder);
    work->unwind = view_unwind_free(work->unwind);
    work->reader = pd_reader_free(work->reader);
    work->follow = follow_free(work->follow);
    selector_done(&work->selector);
    view_frame_done(&work->frames);
    for (size_t i = 0; work->events && i < work->settings->events.n; i++)
        free((void *)work->events[2 * i]);
    free((void *)work->events);
    for (size_t i = 0; i < work->n_coverages; i++)
        pd_coverage_done(&work->coverages[i]);
    free(work->coverages);
    free(work->binaries);
}

static bool view_ids_are_many(const OptionNumbers *numbers) {
    uint64_t n = 0;

    for (size_t i = 0; i < numbers->n; i++)
        n += (uint64_t)numbers->items[i].last - numbers->items[i].first + 1;
    return n > IDS_MAX;
}

static int view_check(const ViewSettings *s, char **files) {
    uint64_t stdins = 0;

    for (char **file = files; *file; file++)
        stdins += strcmp(*file, "-") == 0;
    if (s->last.set && (s->since.set || s->until.set))
        return complain(STATUS_USAGE, "--last is counted from the end; leave out --since and "
                                      "--until, or give these alone.");
    if (s->since.set && s->until.set && s->since.us >= s->until.us)
        return complain(STATUS_USAGE, "--since is not before --until, the window is empty.");
    if (s->session && *files)
        return complain(STATUS_USAGE,
                        "--session is for the running profd; a recording has no sessions.");
    if (stdins > 1)
        return complain(STATUS_USAGE, "Standard input can be read once; give '-' once.");
    if (stdins > 0 && (s->last.set || s->since.set || s->until.set))
        return complain(STATUS_USAGE, "A window needs a file: standard input cannot be read twice; "
                                      "cut it with 'profctl convert --since' before.");
    if (view_ids_are_many(&s->selected.pids) || view_ids_are_many(&s->selected.tids))
        return complain(STATUS_USAGE, "More than %d processes or threads are given.", IDS_MAX);
    return STATUS_OK;
}

/* A word of --event also means the event with any modifiers, as in `dump`. */
static int view_take_events(ViewWork *work) {
    const OptionWords *words = &work->settings->events;

    work->events = calloc(2 * words->n + 1, sizeof(*work->events));
    if (!work->events)
        return -ENOMEM;
    for (size_t i = 0; i < words->n; i++) {
        char *modified;

        if (asprintf(&modified, "%s:*", words->items[i]) < 0)
            return -ENOMEM;
        work->events[2 * i] = modified;
        work->events[2 * i + 1] = words->items[i];
    }
    work->options.filter.events = work->events;
    work->options.filter.n_events = 2 * words->n;
    return 0;
}

int view_work_begin(ViewWork *work) {
    int r = selector_init(&work->selector, &work->settings->selected);

    if (r == 0)
        r = view_frame_begin(work);
    if (r == 0)
        r = view_take_events(work);
    if (r < 0)
        return r;
    work->options.keys = work->request->keys | row_keys_labels(&work->settings->by);
    /* Events are never mixed: their periods have different units. */
    work->options.keys |= profile_key_bit(PROFILE_EVENT);
    work->options.bucket_ns = work->request->bucket_ns;
    r = view_unwind_new(&work->unwind);
    if (r < 0)
        return r;
    work->options.unwind_table = view_unwind_table;
    work->options.unwind_arg = work->unwind;
    work->options.callers_in_branch = true;
    work->options.filter.selection = work->selector.selection;
    return profile_builder_new(&work->options, &work->builder);
}

static int view_read(ViewWork *work, char **files) {
    return *files ? view_files_read(work, files) : view_live_read(work);
}

static uint32_t view_main_event(const Profile *profile) {
    uint32_t found = PROFILE_NONE;

    for (uint32_t i = 0; i < profile->n_events; i++)
        if (profile->events[i].samples > 0 &&
            (found == PROFILE_NONE || profile->events[i].samples > profile->events[found].samples))
            found = i;
    return found;
}

/* Names all frames of the profile and applies the filters that need names. */
static int view_name_frames(ViewWork *work, char **files) {
    const ViewSettings *s = work->settings;
    const ViewResolverOptions options = {
        .files = files,
        .binaries = work->binaries,
        .context = work->context,
        .host = work->view->is_live ? work->view->title : NULL,
        .inlined = s->inlined || s->srclines.n > 0 || row_keys_hold(&s->by, ROW_SRCLINE),
        .merges_unnamed = work->request->merges_unnamed,
        .servers = true,
        .progress = isatty(STDERR_FILENO) && !work->context->quiet,
    };
    _cleanup_(view_resolver_freep) ViewResolver *resolver = NULL;
    int r = view_resolver_new(&options, &resolver);

    if (r == 0)
        r = frame_names_new(&work->view->names);
    if (r == 0)
        r = view_resolver_name(resolver, work->view->profile, work->view->names);
    return r < 0 ? r : frame_filter_apply(&work->frames, work->view->profile, work->view->names);
}

static int view_finish_failed(ViewWork *work, char **files, int r) {
    View *view = work->view;

    if (r == -EBADMSG && *files && view_text_make(work, files) == 0)
        (void)complain(STATUS_FAILED, "Failed to unpack '%s': the archive is damaged.",
                       view->title);
    else
        (void)complain(STATUS_FAILED, "Failed to make a profile: %s.", strerror(-r));
    view->profile = profile_free(view->profile);
    return STATUS_FAILED;
}

/* Whether the view has no sample, which is explained then. */
static bool view_is_empty(ViewWork *work, char **files, int (*complain_of)(ViewWork *, char **),
                          int *ret_status) {
    View *view = work->view;

    if (view->profile->samples > 0 || work->request->may_be_nothing)
        return false;
    *ret_status = complain_of(work, files);
    view->profile = profile_free(view->profile);
    return true;
}

/* On stderr, since pages and exports go elsewhere. */
static void view_report_gaps(const ViewWork *work, char **files) {
    const View *view = work->view;
    _cleanup_(buffer_done) Buffer text = {};

    if (!work->is_partial || work->request->shows_gaps || pd_coverage_is_whole(&view->coverage))
        return;
    text_puts(&text, "Not all of the window");
    view_mismatch_put_place(&text, work, files);
    text_puts(&text, " was recorded: ");
    coverage_describe(&text, &view->coverage);
    text_putc(&text, '.');
    text_putc(&text, '\0');
    if (!buffer_error(&text))
        (void)complain_shown(STATUS_PARTIAL, (const char *)text.data);
}

static int view_finish(ViewWork *work, char **files) {
    View *view = work->view;
    int status, r = profile_builder_take(work->builder, &view->profile);

    if (r < 0)
        return complain(STATUS_FAILED, "Failed to make a profile: %s.", strerror(-r));
    if (view_is_empty(work, files, view_mismatch_complain, &status))
        return status;
    if (!work->request->nameless)
        r = view_name_frames(work, files);
    if (r < 0)
        return view_finish_failed(work, files, r);
    if (view_is_empty(work, files, view_frame_complain, &status))
        return status;
    view->event = view_main_event(view->profile);
    view->bucket_ns = work->request->bucket_ns ?: NS_PER_SECOND;
    r = view_text_make(work, files);
    if (r < 0)
        return view_finish_failed(work, files, r);
    view->is_partial = work->is_partial;
    view_report_gaps(work, files);
    return work->is_partial ? STATUS_PARTIAL : STATUS_OK;
}

int view_load(Context *c, const ViewSettings *settings, char **files, const ViewRequest *request,
              View *ret) {
    _cleanup_(view_work_done)
        ViewWork work = {.context = c, .settings = settings, .request = request, .view = ret};
    int r, status = view_check(settings, files);

    *ret = (View){.event = PROFILE_NONE, .is_live = !*files};
    if (status != STATUS_OK)
        return status;
    r = view_work_begin(&work);
    if (r < 0)
        return complain(STATUS_FAILED, "Failed to make a profile: %s.", strerror(-r));
    status = view_read(&work, files);
    if (status == STATUS_OK)
        status = view_finish(&work, files);
    if (!ret->profile)
        view_done(ret);
    return status;
}

Bytes view_event_name(const View *view, uint32_t event) {
    return text_set_get(view->profile->texts, view->profile->events[event].name);
}
