/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/compare/change-text.h"

#include <errno.h>
#include <limits.h>

#include "client/compare/compare.h"
#include "client/frame/figure.h"
#include "client/frame/screen.h"
#include "client/remote/coverage-text.h"
#include "util/array.h"
#include "util/text.h"

/*
 * One sentence for each change: who, how much now, how much before and yesterday. Then how many are
 * not listed, and what of the compared times is missing, since that may look like a change.
 */

int change_list_add(ChangeList *list, const Change *change) {
    Change *item = array_grow(&list->items, &list->n);

    if (!item)
        return -ENOMEM;
    *item = *change;
    return 0;
}

static void change_put_group(const ChangeList *list, Bytes group, Buffer *out) {
    if (group.size > 0)
        text_escape(out, group);
    else
        text_puts(out, list->by_unit ? "what runs outside of units" : "threads without a name");
}

static void change_put_figures(const Change *change, const ChangeList *list, uint64_t window_us,
                               Buffer *out) {
    bool first = true;

    text_printf(out, "%.2f %s", change->figures[CHANGE_NOW], list->unit);
    for (unsigned side = CHANGE_BEFORE; side < CHANGE_SIDES; side++) {
        if (!change->is_known[side])
            continue;
        text_printf(out, "%s %.2f ", first ? "," : " and", change->figures[side]);
        if (side == CHANGE_BEFORE) {
            text_puts(out, "in the ");
            figure_span_tenths(out, window_us);
            text_puts(out, " before");
        } else
            text_puts(out, "at this time yesterday");
        text_printf(out, " (%+.2f)", change->figures[CHANGE_NOW] - change->figures[side]);
        first = false;
    }
}

static void change_put(const Change *change, const ChangeList *list, uint64_t window_us,
                       Buffer *out) {
    if (change->kind == CHANGE_FUNCTION) {
        text_escape(out, change->symbol);
        text_puts(out, " in ");
    }
    change_put_group(list, change->group, out);
    text_puts(out, change->kind == CHANGE_FUNCTION ? " takes " : " uses ");
    change_put_figures(change, list, window_us, out);
    text_putc(out, '.');
}

static void change_put_line(Context *c, Buffer *text) {
    Buffer *out = &c->out.buffer;

    text_putc(text, '\0');
    if (!buffer_error(text))
        screen_wrap(out, (const char *)text->data, 0, 2, context_width(c) ?: (size_t)SHRT_MAX);
    buffer_clear(text);
}

static uint64_t change_window_us(const ChangeList *list) {
    return list->sides[CHANGE_NOW]->until_us - list->sides[CHANGE_NOW]->since_us;
}

static void change_put_host(const ChangeList *list, Buffer *out) {
    if (list->n == 0)
        text_printf(out, "Nothing changed by more than chance and by at least %d%% of all load: ",
                    CHANGE_MIN_PERCENT);
    text_puts(out, list->n > 0 ? "In all " : "in all ");
    change_put_figures(&list->host, list, change_window_us(list), out);
    text_putc(out, '.');
}

static void change_put_more(const ChangeList *list, Buffer *out) {
    figure_count(out, list->n_more);
    text_puts(out, list->n_more == 1 ? " more change is" : " more changes are");
    text_puts(out, " not listed here; 'profctl diff' has a row for each.");
}

/* Samples of the event; NULL: the side has none. */
static const ProfileEvent *change_event(const ChangeList *list, unsigned side) {
    uint32_t event = list->events[side];

    return event == PROFILE_NONE ? NULL : &list->sides[side]->profile->events[event];
}

static void change_put_counts(const View *view, const ProfileEvent *event, Buffer *out) {
    figure_count(out, event->samples);
    text_puts(out, event->samples == 1 ? " sample" : " samples");
    if (event->lost > 0) {
        text_puts(out, ", ");
        figure_count(out, event->lost);
        text_puts(out, " lost");
    }
    view_put_folded(view, out);
}

/* Says what is missing or folded of a side that is compared, so that its figures are doubtful.
 * False: nothing. */
static bool change_put_doubt(const ChangeList *list, unsigned side, bool for_page, Buffer *out) {
    static const char *const names[CHANGE_SIDES] = {"This window", "The time before",
                                                    "The same time yesterday"};
    const View *view = list->sides[side];
    const ProfileEvent *event = view ? change_event(list, side) : NULL;
    bool has_gaps, is_missing;

    if (!event)
        return false;
    has_gaps = view->coverage_known && !pd_coverage_is_whole(&view->coverage);
    is_missing = has_gaps || view->is_partial || event->lost > 0;
    if (!is_missing && view->profile->folded + view->profile->folded_labels == 0)
        return false;
    text_puts(out, names[side]);
    text_puts(out, is_missing ? " is not complete: " : ": ");
    change_put_counts(view, event, out);
    if (has_gaps) {
        text_puts(out, ", ");
        (for_page ? coverage_describe_for_page : coverage_describe)(out, &view->coverage);
    } else if (view->is_partial)
        text_puts(out, ", and a part could not be read");
    text_puts(out, is_missing ? "; what is missing may look like a change." : ".");
    return true;
}

void change_list_put(const ChangeList *list, Buffer *out) {
    change_put_host(list, out);
    text_putc(out, '\0');
    for (size_t i = 0; i < list->n; i++) {
        change_put(&list->items[i], list, change_window_us(list), out);
        text_putc(out, '\0');
    }
    if (list->n_more > 0) {
        change_put_more(list, out);
        text_putc(out, '\0');
    }
    for (unsigned side = 0; side < CHANGE_SIDES; side++)
        if (change_put_doubt(list, side, true, out))
            text_putc(out, '\0');
}

static void change_print_remarks(Context *c, const ChangeList *list, Buffer *text) {
    for (unsigned side = 0; side < CHANGE_SIDES; side++)
        if (change_put_doubt(list, side, false, text))
            change_put_line(c, text);
    if (list->is_spread_known)
        return;
    text_puts(text, "The window is too short to see how much load varies anyway; chance is that of "
                    "counts alone.");
    change_put_line(c, text);
}

static void change_list_print_text(Context *c, const ChangeList *list) {
    const View *now = list->sides[CHANGE_NOW];
    _cleanup_(buffer_done) Buffer text = {};

    if (!c->no_legend) {
        text_escape_str(&text, now->title);
        text_puts(&text, ", ");
        coverage_times(&text, now->since_us, now->until_us);
        text_putc(&text, ':');
        change_put_line(c, &text);
    }
    change_put_host(list, &text);
    change_put_line(c, &text);
    for (size_t i = 0; i < list->n; i++) {
        text_puts(&text, "- ");
        change_put(&list->items[i], list, change_window_us(list), &text);
        change_put_line(c, &text);
    }
    if (list->n_more > 0) {
        change_put_more(list, &text);
        change_put_line(c, &text);
    }
    if (!c->no_legend)
        change_print_remarks(c, list, &text);
}

static const char *const change_sides[CHANGE_SIDES] = {"now", "before", "yesterday"};

static void change_json_figures(const Change *change, Fields *f) {
    for (unsigned side = 0; side < CHANGE_SIDES; side++)
        if (change->is_known[side])
            fields_double(f, change_sides[side], change->figures[side]);
}

static void change_json(const Change *change, const ChangeList *list, uint64_t window_us,
                        Fields *f) {
    _cleanup_(buffer_done) Buffer text = {};

    change_put(change, list, window_us, &text);
    text_putc(&text, '\0');
    fields_bytes(f, list->by_unit ? "unit" : "comm", change->group);
    if (change->kind == CHANGE_FUNCTION)
        fields_bytes(f, "symbol", change->symbol);
    fields_str(f, "against", change_sides[change->against]);
    change_json_figures(change, f);
    fields_double(f, "q", change->q);
    fields_str(f, "text", buffer_error(&text) ? "" : (const char *)text.data);
}

static void change_list_print_json(Context *c, const ChangeList *list) {
    const View *now = list->sides[CHANGE_NOW];
    Fields f = fields_to(&c->out.buffer, context_fields_format(c));

    fields_begin_object(&f, NULL);
    fields_str(&f, "title", now->title);
    fields_u64(&f, "sinceUsec", now->since_us);
    fields_u64(&f, "untilUsec", now->until_us);
    view_put_completeness(now, &f);
    fields_str(&f, "figures", list->unit);
    fields_bool(&f, "spreadKnown", list->is_spread_known);
    fields_begin_object(&f, "sides");
    for (unsigned side = 0; side < CHANGE_SIDES; side++)
        if (list->sides[side])
            compare_put_side(&f, change_sides[side], list->sides[side], list->events[side]);
    fields_end_object(&f);
    fields_begin_object(&f, "all");
    change_json_figures(&list->host, &f);
    fields_end_object(&f);
    for (size_t i = fields_begin_list(&f, "changes"); fields_next(&f, i, list->n); i++)
        change_json(&list->items[i], list, change_window_us(list), &f);
    fields_u64(&f, "more", list->n_more);
    fields_end_object(&f);
    text_putc(&c->out.buffer, '\n');
}

void change_list_print(Context *c, const ChangeList *list) {
    if (c->json != JSON_OFF)
        change_list_print_json(c, list);
    else
        change_list_print_text(c, list);
}
