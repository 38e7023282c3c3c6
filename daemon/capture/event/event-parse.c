/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/event/event-parse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "perfdata/event/format.h"
#include "util/array.h"
#include "util/text.h"

/* The bottom of the event grammar: sentences about failures, numbers, and the list that grows. */

enum { SHOWN_MAX = 200 /* bytes of an event in a sentence about it */ };

/* The text from the event's first byte to the comma that ends it. */
static Bytes event_text(const EventParser *p) {
    const char *from = p->event;
    /* In an address with a length one slash has no partner. */
    bool has_terms = strncmp(from, "mem:", 4) != 0, in_terms = false;
    size_t n = 0;

    for (; from[n]; n++) {
        if (from[n] == '/' && has_terms)
            in_terms = !in_terms;
        if (!in_terms && (from[n] == ',' || from[n] == '}'))
            break;
    }
    return (Bytes){.data = (const uint8_t *)from, .size = MIN(n, (size_t)SHOWN_MAX)};
}

int event_fail(EventParser *p, int r, const char *format, ...) {
    _cleanup_(buffer_done) Buffer shown = {}, escaped = {};
    char rest[1024];
    size_t offset = (size_t)(p->event - p->text);
    char where[32] = "";
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(rest, sizeof(rest), format, arguments);
    va_end(arguments);
    text_escape(&shown, event_text(p));
    text_escape_str(&escaped, rest);
    if (buffer_error(&shown) < 0 || buffer_error(&escaped) < 0)
        return -ENOMEM;
    /* One of several may be meant. */
    if (offset > 0)
        (void)snprintf(where, sizeof(where), " at offset %zu", offset);
    (void)snprintf(p->error, p->error_size, "Event '%.*s'%s %.*s", (int)shown.size,
                   shown.data ? (const char *)shown.data : "", where, (int)escaped.size,
                   (const char *)escaped.data);
    return r;
}

int event_number(Bytes text, uint64_t *ret) {
    bool hex = text.size > 2 && text.data[0] == '0' && (text.data[1] | 0x20) == 'x';
    uint64_t v = 0;
    size_t i = hex ? 2 : 0;

    if (i == text.size)
        return -EINVAL;
    for (; i < text.size; i++) {
        unsigned c = text.data[i], digit = c - '0';

        if (hex && digit > 9)
            digit = (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : 16;
        if (digit >= (hex ? 16U : 10U))
            return -EINVAL;
        if (__builtin_mul_overflow(v, hex ? 16 : 10, &v) || __builtin_add_overflow(v, digit, &v))
            return -ERANGE;
    }
    *ret = v;
    return 0;
}

EventSpec *event_list_add(EventParser *p, int *ret_error) {
    EventSpec *s;

    if (p->list->n >= EVENT_LIST_MAX) {
        *ret_error = event_fail(p, -EINVAL, "makes it more than %d events, which is the limit",
                                EVENT_LIST_MAX);
        return NULL;
    }
    s = array_grow(&p->list->specs, &p->list->n);
    if (!s) {
        *ret_error = event_fail(p, -ENOMEM, "does not fit into memory");
        return NULL;
    }
    s->flags = PD_ATTR_EXCLUDE_GUEST;
    s->leader = p->list->n - 1;
    s->n_members = 1;
    return s;
}
