/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>
#include <string.h>

#include "client/compare/change-text.h"
#include "client/compare/changed.h"
#include "client/compare/compare.h"
#include "client/report/picture-file.h"
#include "util/clock.h"

/*
 * `profctl changed`, for somebody who was just woken up: the last minutes against the same time
 * before, and against the same time of yesterday where there are samples of it. It compares load,
 * not shares, by unit (or by name of thread where units are not known) and by function.
 */

enum { SHOWN_MAX = 5 /* of a kind and a baseline */ };

#define DAY_US    (24 * 3600 * US_PER_SECOND)
#define WINDOW_US (5 * 60 * US_PER_SECOND)

typedef struct ChangedSettings {
    ViewSettings view;
} ChangedSettings;

typedef struct Changed {
    Context *context;
    const ChangedSettings *settings;
    ViewSettings view; /* with the window; its lists are those of settings */
    View sides[CHANGE_SIDES];
    uint32_t event;
    bool has_units;
    ProfileDiff *diffs[CHANGE_KINDS][CHANGE_SIDES]; /* that of CHANGE_NOW is NULL */
    ChangeList list;
} Changed;

static void changed_done(Changed *changed) {
    for (unsigned side = 0; side < CHANGE_SIDES; side++) {
        view_done(&changed->sides[side]);
        for (unsigned kind = 0; kind < CHANGE_KINDS; kind++)
            profile_diff_free(changed->diffs[kind][side]);
    }
    free(changed->list.items);
}

static int changed_load(Changed *changed, char **files) {
    const ViewSettings *s = &changed->view;
    uint64_t window_us = s->last.set ? s->last.us : WINDOW_US;
    ViewRequest request = {.keys = profile_key_bit(PROFILE_TIME) | profile_key_bit(PROFILE_UNIT) |
                                   profile_key_bit(PROFILE_COMM),
                           .merges_unnamed = true};
    View *now = &changed->sides[CHANGE_NOW];
    int r, status =
               compare_settle_window(&changed->settings->view, files, WINDOW_US, 0, &changed->view);

    if (status != STATUS_OK)
        return status;
    if (s->since.set && s->until.set)
        window_us = s->until.us - s->since.us;
    request.bucket_ns = compare_bucket_ns(window_us);
    status = view_load(changed->context, s, files, &request, now);
    if (!now->profile)
        return status;
    r = compare_load_earlier(changed->context, s, files, &request, now, 0,
                             &changed->sides[CHANGE_BEFORE]);
    if (!changed->sides[CHANGE_BEFORE].profile && r != STATUS_NOT_FOUND)
        return r;
    if (r == STATUS_PARTIAL)
        status = r;
    /* Yesterday may have been deleted already, so its absence is no failure. */
    if (now->since_us > DAY_US)
        (void)compare_load_earlier(changed->context, s, files, &request, now, DAY_US,
                                   &changed->sides[CHANGE_YESTERDAY]);
    return status;
}

/* Whether there are samples of the event to compare with. */
static bool changed_has_samples(const Changed *changed, unsigned side) {
    const View *view = &changed->sides[side];

    return view->profile &&
           compare_event(&changed->sides[CHANGE_NOW], view, changed->event) != PROFILE_NONE;
}

static bool changed_knows_units(const Profile *profile) {
    for (size_t i = 0; i < profile->n_labels; i++) {
        uint32_t unit = profile->labels[i].values[PROFILE_UNIT];

        if (unit != PROFILE_NONE && text_set_get(profile->texts, unit).size > 0)
            return true;
    }
    return false;
}

static int changed_compare(Changed *changed) {
    const View *now = &changed->sides[CHANGE_NOW];
    uint8_t group = changed->has_units ? (uint8_t)PROFILE_UNIT : (uint8_t)PROFILE_COMM;
    const RowKeys keys[CHANGE_KINDS] = {{{group}, 1}, {{group, ROW_SYMBOL}, 2}};

    for (unsigned side = CHANGE_BEFORE; side < CHANGE_SIDES; side++)
        for (unsigned kind = 0; kind < CHANGE_KINDS; kind++) {
            DiffOptions options = {.keys = keys[kind],
                                   .by_rate = true,
                                   .by_period = now->profile->events[changed->event].is_time,
                                   .change_min = CHANGE_MIN_PERCENT / 100.0};

            if (changed_has_samples(changed, side) &&
                compare_views(&changed->sides[side], now, changed->event, &options,
                              &changed->diffs[kind][side]) < 0)
                return compare_no_memory();
        }
    return STATUS_OK;
}

/* The row of another comparison with the same values; NULL: it has none. */
static const DiffRow *changed_find(const ProfileDiff *diff, const ProfileDiff *from,
                                   const DiffRow *row) {
    uint32_t values[ROW_KEYS];
    size_t n = from->options.keys.n;

    if (!diff)
        return NULL;
    for (size_t k = 0; k < n; k++)
        if (!text_set_find(diff->texts, text_set_get(from->texts, row->values[k]), &values[k]))
            return NULL;
    for (size_t i = 0; i < diff->n_rows; i++)
        if (memcmp(diff->rows[i].values, values, n * sizeof(*values)) == 0)
            return &diff->rows[i];
    return NULL;
}

static double changed_figure(const Changed *changed, double rate) {
    return compare_rate(&changed->sides[CHANGE_NOW], changed->event, rate);
}

static Change changed_describe(const Changed *changed, ChangeKind kind, unsigned side,
                               const DiffRow *row) {
    const ProfileDiff *diff = changed->diffs[kind][side];
    Change change = {.kind = kind,
                     .against = side,
                     .q = row->q,
                     .group = text_set_get(diff->texts, row->values[0])};

    if (kind == CHANGE_FUNCTION)
        change.symbol = text_set_get(diff->texts, row->values[1]);
    change.figures[CHANGE_NOW] = changed_figure(changed, row->after);
    for (unsigned other = CHANGE_BEFORE; other < CHANGE_SIDES; other++) {
        const DiffRow *same = changed_find(changed->diffs[kind][other], diff, row);

        change.is_known[other] = changed->diffs[kind][other] != NULL;
        change.figures[other] = same ? changed_figure(changed, same->before) : 0;
    }
    change.is_known[CHANGE_NOW] = true;
    return change;
}

/* A row that differs from both is one change. */
static bool changed_is_told(const Changed *changed, ChangeKind kind, unsigned side,
                            const DiffRow *row) {
    const DiffRow *same;

    if (side == CHANGE_BEFORE)
        return false;
    same = changed_find(changed->diffs[kind][CHANGE_BEFORE], changed->diffs[kind][side], row);
    return same && same->is_significant;
}

static int changed_collect(Changed *changed) {
    for (unsigned side = CHANGE_BEFORE; side < CHANGE_SIDES; side++)
        for (unsigned kind = 0; kind < CHANGE_KINDS; kind++) {
            const ProfileDiff *diff = changed->diffs[kind][side];
            unsigned n = 0;

            for (size_t i = 0; diff && i < diff->n_significant; i++) {
                Change change;

                if (changed_is_told(changed, kind, side, &diff->rows[i]))
                    continue;
                if (n++ >= SHOWN_MAX) {
                    changed->list.n_more++;
                    continue;
                }
                change = changed_describe(changed, kind, side, &diff->rows[i]);
                if (change_list_add(&changed->list, &change) < 0)
                    return compare_no_memory();
            }
        }
    return STATUS_OK;
}

static void changed_describe_sides(Changed *changed) {
    const View *now = &changed->sides[CHANGE_NOW];

    for (unsigned side = 0; side < CHANGE_SIDES; side++) {
        const View *view = &changed->sides[side];

        changed->list.sides[side] = view->profile ? view : NULL;
        changed->list.events[side] =
            view->profile ? compare_event(now, view, changed->event) : PROFILE_NONE;
    }
}

static void changed_describe_host(Changed *changed) {
    Change *host = &changed->list.host;

    for (unsigned side = CHANGE_BEFORE; side < CHANGE_SIDES; side++) {
        const ProfileDiff *diff = changed->diffs[CHANGE_UNIT][side];

        host->is_known[side] = diff != NULL;
        if (!diff)
            continue;
        host->figures[CHANGE_NOW] = changed_figure(changed, diff->whole.after);
        host->is_known[CHANGE_NOW] = true;
        host->figures[side] = changed_figure(changed, diff->whole.before);
        changed->list.is_spread_known = diff->is_spread_known;
    }
}

/* Loads and compares all sides; an ExitStatus. `list` is filled if there was something to compare
 * with, and then list.unit is set. */
static int changed_find_all(Changed *changed, char **files) {
    const View *now = &changed->sides[CHANGE_NOW];
    int r, status = changed_load(changed, files);

    if (!now->profile || (status != STATUS_OK && status != STATUS_PARTIAL))
        return status;
    changed->event = picture_event(changed->context, now);
    if (!changed_has_samples(changed, CHANGE_BEFORE) &&
        !changed_has_samples(changed, CHANGE_YESTERDAY))
        return STATUS_NOT_FOUND;
    changed->has_units = changed_knows_units(now->profile);
    r = changed_compare(changed);
    if (r == STATUS_OK)
        r = changed_collect(changed);
    if (r != STATUS_OK)
        return r;
    changed_describe_sides(changed);
    changed_describe_host(changed);
    changed->list.unit = compare_unit(now, changed->event);
    changed->list.by_unit = changed->has_units;
    return status;
}

int changed_sentences(Context *c, const ViewSettings *view, char **files, Buffer *out) {
    const ChangedSettings settings = {.view = *view};
    _cleanup_(changed_done) Changed changed = {.context = c, .settings = &settings};
    int status = changed_find_all(&changed, files);

    if (changed.list.unit)
        change_list_put(&changed.list, out);
    return status;
}

static int changed_run(Context *c, void *settings, char **arguments) {
    _cleanup_(changed_done) Changed changed = {.context = c, .settings = settings};
    int status = changed_find_all(&changed, arguments);

    if (changed.list.unit)
        change_list_print(c, &changed.list);
    else if (status == STATUS_NOT_FOUND && changed.sides[CHANGE_NOW].profile)
        return complain(STATUS_NOT_FOUND,
                        "No samples of the same event were recorded before this window, so there "
                        "is nothing to compare it with; a shorter --last may help.");
    return status;
}

static void changed_settings_done(void *settings) {
    view_settings_done(&((ChangedSettings *)settings)->view);
}

/* clang-format off */
static const Option changed_options[] = {
    VIEW_WINDOW_OPTIONS(ChangedSettings, view)
    VIEW_FILTER_OPTIONS(ChangedSettings, view)
    VIEW_LINE_OPTIONS(ChangedSettings, view)
    VIEW_NAME_OPTIONS(ChangedSettings, view)
    {},
};
/* clang-format on */

const Command command_changed = {
    .name = "changed",
    .group = COMMAND_VIEW,
    .arguments = "[FILE…]",
    .n_max = UINT_MAX,
    .summary = "Say what changed in the last minutes, in a few sentences",
    .notes = "It compares the load of the last five minutes, or of the window of the options, with "
             "the same time before and with the same time of yesterday, by unit and by function. "
             "It leaves out what chance explains.\n"
             "Several recordings are one source: one of today and one of yesterday. The window "
             "ends with their newest sample; of short recordings it is the second half.",
    .options = changed_options,
    .settings_size = sizeof(ChangedSettings),
    .run = changed_run,
    .done = changed_settings_done,
};
