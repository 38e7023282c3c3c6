/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/plan/plan-note.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/array.h"

/* A list of sentences: the start of a session logs them, a check of the configuration reports them.
 */

void plan_notes_done(PlanNotes *notes) {
    for (size_t i = 0; i < notes->n; i++)
        free(notes->items[i].text);
    free(notes->items);
    *notes = (PlanNotes){};
}

const PlanNote *plan_notes_left_out(const PlanNotes *notes) {
    for (size_t i = 0; i < notes->n; i++)
        if (notes->items[i].kind == PLAN_LEFT_OUT)
            return &notes->items[i];
    return NULL;
}

size_t plan_notes_n_left_out(const PlanNotes *notes) {
    size_t n = 0;

    for (size_t i = 0; i < notes->n; i++)
        n += notes->items[i].kind == PLAN_LEFT_OUT;
    return n;
}

int plan_note(PlanNotes *notes, PlanNoteKind kind, int error, const char *format, ...) {
    PlanNote *item;
    char *text;
    va_list ap;
    int n;

    va_start(ap, format);
    n = vasprintf(&text, format, ap);
    va_end(ap);
    if (n < 0)
        return -ENOMEM;
    item = array_grow(&notes->items, &notes->n);
    if (!item) {
        free(text);
        return -ENOMEM;
    }
    *item = (PlanNote){kind, error, text};
    return 0;
}
