/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/doctor/doctor-check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/text.h"

/* Stores the findings of the checks: sentences and remedies, in order of arrival. */

/* Formats the text and escapes it where needed; NULL without memory. */
_printf_(2, 0) static char *make_text(Doctor *d, const char *format, va_list ap) {
    _cleanup_(buffer_done) Buffer safe = {};
    _cleanup_free_ char *text = NULL;
    int n = vasprintf(&text, format, ap);

    if (n < 0) {
        text = NULL;
        d->failed = true;
        return NULL;
    }
    text_escape_again(&safe, (Bytes){.data = (const uint8_t *)text, .size = (size_t)n});
    text_putc(&safe, '\0');
    if (buffer_error(&safe)) {
        d->failed = true;
        return NULL;
    }
    return (char *)TAKE_PTR(safe.data);
}

void doctor_say(Doctor *d, Health health, const char *format, ...) {
    Diagnosis *diagnosis = array_grow(&d->items, &d->n);
    va_list ap;

    if (!diagnosis) {
        d->failed = true;
        return;
    }
    diagnosis->check = d->check;
    diagnosis->health = health;
    d->counts[health]++;
    va_start(ap, format);
    diagnosis->text = make_text(d, format, ap);
    va_end(ap);
}

void doctor_mend(Doctor *d, const char *format, ...) {
    va_list ap;

    if (d->n == 0 || d->failed)
        return;
    va_start(ap, format);
    free(d->items[d->n - 1].remedy);
    d->items[d->n - 1].remedy = make_text(d, format, ap);
    va_end(ap);
}

void doctor_done(Doctor *d) {
    for (size_t i = 0; i < d->n; i++) {
        free(d->items[i].text);
        free(d->items[i].remedy);
    }
    free(d->items);
    d->items = NULL;
    d->n = 0;
}

const char *doctor_escape(const char *text, char *ret, size_t size) {
    _cleanup_(buffer_done) Buffer b = {};
    size_t n = 0;

    for (; *text; text++) {
        buffer_clear(&b);
        /* Escapes byte by byte: these texts need no characters beyond ASCII. */
        text_escape(&b, (Bytes){.data = (const uint8_t *)text, .size = 1});
        if (buffer_error(&b) || n + b.size >= size)
            break;
        memcpy(ret + n, b.data, b.size);
        n += b.size;
    }
    ret[n] = '\0';
    return ret;
}
