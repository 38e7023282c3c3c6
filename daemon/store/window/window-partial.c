/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "store/window/window.h"

/* The sentences that say why a window has less than was requested. */

void window_note_partial(Window *w, const char *format, ...) {
    char text[SNAPSHOT_TEXT_MAX];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    for (size_t i = 0; i < w->n_partial; i++)
        if (strcmp(w->partial[i], text) == 0)
            return;
    if (w->n_partial < SNAPSHOT_PARTIAL_MAX)
        memcpy(w->partial[w->n_partial++], text, sizeof(text));
}
