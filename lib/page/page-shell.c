/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "page/page-shell.h"

#include <errno.h>

#include "page/page-template.h"

/*
 * Copies the template and fills its slots. What an incident says in words is written here as HTML,
 * so that it can be read where no script runs, such as in a mail program.
 */

typedef struct PageSlot {
    PageWriter *w;
    const PageData *data;
    const PageIncident *incident;
} PageSlot;

static int page_slot_title(const PageSlot *s) {
    page_html_str(s->w, s->data->input->title);
    return 0;
}

static int page_slot_subtitle(const PageSlot *s) {
    if (s->data->input->subtitle)
        page_html_str(s->w, s->data->input->subtitle);
    return 0;
}

static int page_slot_page(const PageSlot *s) {
    page_puts(s->w, s->data->page);
    return 0;
}

static int page_slot_facts(const PageSlot *s) {
    for (size_t i = 0; s->incident && i < s->incident->n_facts; i++) {
        page_puts(s->w, "<div><dt>");
        page_html_str(s->w, s->incident->facts[i].name);
        page_puts(s->w, "</dt><dd>");
        page_html_str(s->w, s->incident->facts[i].value);
        page_puts(s->w, "</dd></div>\n");
    }
    return 0;
}

static int page_slot_changes(const PageSlot *s) {
    for (size_t i = 0; s->incident && i < s->incident->n_changes; i++) {
        page_puts(s->w, "<li>");
        page_html_str(s->w, s->incident->changes[i]);
        page_puts(s->w, "</li>\n");
    }
    return 0;
}

static int page_slot_data(const PageSlot *s) {
    return page_data_write(s->w, s->data);
}

/* clang-format off */
static const struct {
    const char *name;
    int (*write)(const PageSlot *slot);
} page_slots[] = {
    {"title",    page_slot_title},
    {"subtitle", page_slot_subtitle},
    {"page",     page_slot_page},
    {"facts",    page_slot_facts},
    {"changes",  page_slot_changes},
    {"data",     page_slot_data},
};
/* clang-format on */

static int page_shell_slot(const PageSlot *s, Bytes name) {
    for (size_t i = 0; i < ARRAY_SIZE(page_slots); i++)
        if (bytes_equal_str(name, page_slots[i].name))
            return page_slots[i].write(s);
    return -EINVAL;
}

int page_shell_write(PageWriter *w, const PageData *data, const PageIncident *incident) {
    const PageSlot slot = {.w = w, .data = data, .incident = incident};
    const uint8_t *at = page_template, *end = page_template + page_template_size;
    int r = 0;

    while (at < end && r >= 0) {
        const uint8_t *open = memmem(at, (size_t)(end - at), "{{", 2);
        const uint8_t *close = open ? memmem(open, (size_t)(end - open), "}}", 2) : NULL;

        page_write(w, at, (size_t)((close ? open : end) - at));
        if (!close)
            break;
        r = page_shell_slot(&slot, (Bytes){.data = open + 2, .size = (size_t)(close - open) - 2});
        at = close + 2;
    }
    return r;
}
