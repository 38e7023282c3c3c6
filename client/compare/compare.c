/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/compare/compare.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/macro.h"

/* Windows are moved by the wall clock, so both sides must know the time of day. */

#define DAY_US        (24 * 3600 * US_PER_SECOND)
#define BUCKET_MIN_NS 50000000ULL

static const uint64_t bucket_unknown_ns = 250000000;

int compare_no_memory(void) {
    return complain(STATUS_FAILED, "Failed to compare: %s.", strerror(ENOMEM));
}

int option_baseline(const Option *option, const char *argument, void *field) {
    Baseline *baseline = field;
    OptionTimestamp span = {};

    *baseline = (Baseline){.is_given = true};
    if (strcmp(argument, "yesterday") == 0)
        baseline->shift_us = DAY_US;
    else if (option_span(option, argument, &span) == 0)
        baseline->shift_us = span.us;
    else if (argument[0] == '\0')
        return -EINVAL;
    else
        baseline->file = argument;
    return 0;
}

int compare_settle_window(const ViewSettings *settings, char **files, uint64_t usual_us,
                          uint64_t earlier_us, ViewSettings *ret) {
    uint64_t since, until, span, window;
    int r;

    *ret = *settings;
    if (!*files || settings->since.set || settings->until.set)
        return STATUS_OK;
    r = view_recordings_span(files, &since, &until);
    if (r < 0)
        return r == -ECANCELED ? STATUS_FAILED : STATUS_OK;
    span = until - since;
    window = usual_us > 0 ? MIN(usual_us, span) : span;
    if (earlier_us > 0)
        window = MIN(window, earlier_us);
    else
        window = MIN(window, span / 2);
    if (settings->last.set)
        window = settings->last.us;
    ret->last = (OptionTimestamp){};
    ret->since = (OptionTimestamp){.set = true, .us = until - MIN(window, until - 1)};
    ret->until = (OptionTimestamp){.set = true, .us = until};
    return STATUS_OK;
}

int compare_load_earlier(Context *c, const ViewSettings *settings, char **files,
                         const ViewRequest *request, const View *after, uint64_t shift_us,
                         View *ret) {
    ViewSettings earlier = *settings;
    ViewRequest r = *request;
    bool is_settled = settings->since.set && settings->until.set;
    uint64_t since = is_settled ? settings->since.us : after->since_us,
             until = is_settled ? settings->until.us : after->until_us;

    if (shift_us == 0)
        shift_us = until - since;
    if (after->until_us == 0 || since <= shift_us)
        return complain(STATUS_USAGE, "The recording does not have the time of day of its samples, "
                                      "so nothing earlier can be found in it; give two "
                                      "recordings.");
    r.may_be_nothing = r.may_be_absent = true;
    earlier.last = (OptionTimestamp){};
    earlier.since = (OptionTimestamp){.set = true, .us = since - shift_us};
    earlier.until = (OptionTimestamp){.set = true, .us = until - shift_us};
    return view_load(c, &earlier, files, &r, ret);
}

uint32_t compare_event(const View *view, const View *other, uint32_t event) {
    Bytes name = view_event_name(view, event);

    for (uint32_t i = 0; i < other->profile->n_events; i++) {
        Bytes found = view_event_name(other, i);

        if (other->profile->events[i].samples > 0 && bytes_equal(found, name))
            return i;
    }
    return PROFILE_NONE;
}

uint64_t compare_bucket_ns(uint64_t window_us) {
    uint64_t ns = window_us * NS_PER_US / 64;

    return window_us == 0 ? bucket_unknown_ns : MAX(ns, BUCKET_MIN_NS);
}

static DiffSide compare_side(const View *view, uint32_t event) {
    const Profile *p = view->profile;
    DiffSide side = {.profile = p, .names = view->names, .event = event};

    if (view->until_us > 0 && p->real_known) {
        side.window.from_ns = view->since_us * NS_PER_US;
        side.window.to_ns = view->until_us * NS_PER_US;
    }
    if (view->coverage_known)
        side.window.coverage = &view->coverage;
    return side;
}

int compare_views(const View *before, const View *after, uint32_t event, const DiffOptions *options,
                  ProfileDiff **ret) {
    DiffSide a = compare_side(before, compare_event(after, before, event)),
             b = compare_side(after, event);

    return profile_diff_new(&a, &b, options, ret);
}

static bool compare_is_time(const View *view, uint32_t event) {
    return event != PROFILE_NONE && view->profile->events[event].is_time;
}

const char *compare_unit(const View *view, uint32_t event) {
    return compare_is_time(view, event) ? "CPUs" : "samples/s";
}

double compare_rate(const View *view, uint32_t event, double rate) {
    return compare_is_time(view, event) ? rate / (double)NS_PER_SECOND : rate;
}

void compare_put_side(Fields *f, const char *name, const View *view, uint32_t event) {
    const Profile *p = view->profile;
    const ProfileEvent none = {}, *counts = event == PROFILE_NONE ? &none : &p->events[event];

    fields_begin_object(f, name);
    fields_str(f, "title", view->title);
    fields_u64(f, "samples", counts->samples);
    fields_u64(f, "period", counts->period);
    fields_u64(f, "lost", counts->lost);
    fields_u64(f, "folded", p->folded);
    fields_u64(f, "foldedLabels", p->folded_labels);
    if (view->until_us > 0) {
        fields_u64(f, "sinceUsec", view->since_us);
        fields_u64(f, "untilUsec", view->until_us);
    }
    view_put_completeness(view, f);
    fields_end_object(f);
}
