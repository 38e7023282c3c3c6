/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/compare/change-text.h"

#include <errno.h>
#include <limits.h>

#include "client/frame/figure.h"
#include "client/frame/screen.h"
#include "client/remote/coverage-text.h"
#include "util/array.h"
#include "util/text.h"

/* One sentence for each change: who, how much now, how much before and yesterday. */

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

void change_list_put(const View *now, const ChangeList *list, Buffer *out) {
    uint64_t window_us = now->until_us - now->since_us;

    text_puts(out, list->n > 0 ? "In all " : "Nothing changed by more than chance: in all ");
    change_put_figures(&list->host, list, window_us, out);
    buffer_append(out, ".", 2);
    for (size_t i = 0; i < list->n; i++) {
        change_put(&list->items[i], list, window_us, out);
        text_putc(out, '\0');
    }
}

static void change_list_print_text(Context *c, const View *now, const ChangeList *list) {
    uint64_t window_us = now->until_us - now->since_us;
    _cleanup_(buffer_done) Buffer text = {};

    if (!c->no_legend) {
        text_escape_str(&text, now->title);
        text_puts(&text, ", ");
        coverage_times(&text, now->since_us, now->until_us);
        text_putc(&text, ':');
        change_put_line(c, &text);
    }
    text_puts(&text, list->n > 0 ? "In all " : "Nothing changed by more than chance: in all ");
    change_put_figures(&list->host, list, window_us, &text);
    text_putc(&text, '.');
    change_put_line(c, &text);
    for (size_t i = 0; i < list->n; i++) {
        text_puts(&text, "- ");
        change_put(&list->items[i], list, window_us, &text);
        change_put_line(c, &text);
    }
    if (!c->no_legend && !list->is_spread_known) {
        text_puts(&text, "The window is too short to see how much load varies anyway; chance is "
                         "that of counts alone.");
        change_put_line(c, &text);
    }
}

static void change_json_figures(const Change *change, Fields *f) {
    static const char *const names[CHANGE_SIDES] = {"now", "before", "yesterday"};

    for (unsigned side = 0; side < CHANGE_SIDES; side++)
        if (change->is_known[side])
            fields_double(f, names[side], change->figures[side]);
}

static void change_json(const Change *change, const ChangeList *list, uint64_t window_us,
                        Fields *f) {
    _cleanup_(buffer_done) Buffer text = {};

    change_put(change, list, window_us, &text);
    text_putc(&text, '\0');
    fields_bytes(f, list->by_unit ? "unit" : "comm", change->group);
    if (change->kind == CHANGE_FUNCTION)
        fields_bytes(f, "symbol", change->symbol);
    fields_str(f, "against", change->against == CHANGE_BEFORE ? "before" : "yesterday");
    change_json_figures(change, f);
    fields_double(f, "q", change->q);
    fields_str(f, "text", buffer_error(&text) ? "" : (const char *)text.data);
}

static void change_list_print_json(Context *c, const View *now, const ChangeList *list) {
    Fields f = fields_to(&c->out.buffer, context_fields_format(c));

    fields_begin_object(&f, NULL);
    fields_str(&f, "title", now->title);
    fields_u64(&f, "sinceUsec", now->since_us);
    fields_u64(&f, "untilUsec", now->until_us);
    view_put_completeness(now, &f);
    fields_str(&f, "figures", list->unit);
    fields_bool(&f, "spreadKnown", list->is_spread_known);
    fields_begin_object(&f, "all");
    change_json_figures(&list->host, &f);
    fields_end_object(&f);
    for (size_t i = fields_begin_list(&f, "changes"); fields_next(&f, i, list->n); i++)
        change_json(&list->items[i], list, now->until_us - now->since_us, &f);
    fields_end_object(&f);
    text_putc(&c->out.buffer, '\n');
}

void change_list_print(Context *c, const View *now, const ChangeList *list) {
    if (c->json != JSON_OFF)
        change_list_print_json(c, now, list);
    else
        change_list_print_text(c, now, list);
}
