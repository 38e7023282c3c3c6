/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/fields.h"

#include <math.h>
#include <string.h>

#include "util/text.h"

/*
 * The two outputs of a description. The only state is how deep we are and whether something
 * stands before us in the innermost container; what ends a container makes the next member of the
 * outer one a second one, so one flag is enough.
 */

Fields fields_to(Buffer *out, FieldsFormat format) {
    return (Fields){.out = out, .format = format, .first = true};
}

static void break_line(Fields *f) {
    text_putc(f->out, '\n');
    for (unsigned i = 0; i < f->depth; i++)
        text_puts(f->out, "  ");
}

/* What stands between the member before and this one, and the name. */
static void begin(Fields *f, const char *name) {
    bool json = f->format != FIELDS_TEXT, pretty = f->format == FIELDS_JSON_PRETTY;
    size_t n = name ? strlen(name) : 0;
    char *start, *p;

    if (!f->first)
        text_putc(f->out, json ? ',' : ' ');
    f->first = false;
    if (pretty && f->depth > 0)
        break_line(f);
    if (!name)
        return;
    start = p = (char *)buffer_reserve(f->out, n + 4);
    if (!p)
        return;
    if (json)
        *p++ = '"';
    p = mempcpy(p, name, n);
    if (json) {
        *p++ = '"';
        *p++ = ':';
    }
    if (!json || pretty)
        *p++ = ' ';
    buffer_commit(f->out, (size_t)(p - start));
}

static void open_container(Fields *f, const char *name, char json, const char *text) {
    begin(f, name);
    if (f->format != FIELDS_TEXT)
        text_putc(f->out, json);
    else if (f->depth > 0)
        text_puts(f->out, text);
    f->depth++;
    f->first = true;
}

static void close_container(Fields *f, char json, const char *text) {
    f->depth--;
    if (f->format == FIELDS_JSON_PRETTY && !f->first)
        break_line(f);
    if (f->format != FIELDS_TEXT)
        text_putc(f->out, json);
    else if (f->depth > 0)
        text_puts(f->out, text);
    f->first = false;
}

void fields_begin_object(Fields *f, const char *name) {
    open_container(f, name, '{', "{");
}

void fields_end_object(Fields *f) {
    close_container(f, '}', "}");
}

void fields_begin_array(Fields *f, const char *name) {
    open_container(f, name, '[', "[");
}

void fields_end_array(Fields *f) {
    close_container(f, ']', "]");
}

void fields_u64(Fields *f, const char *name, uint64_t v) {
    begin(f, name);
    text_u64(f->out, v);
}

void fields_i64(Fields *f, const char *name, int64_t v) {
    begin(f, name);
    text_i64(f->out, v);
}

void fields_hex(Fields *f, const char *name, uint64_t v) {
    bool json = f->format != FIELDS_TEXT;

    begin(f, name);
    if (json)
        text_putc(f->out, '"');
    text_hex(f->out, v);
    if (json)
        text_putc(f->out, '"');
}

void fields_hex_items(Fields *f, const uint8_t *data, size_t n, bool swap) {
    bool json = f->format != FIELDS_TEXT;

    for (size_t i = 0; i < n; i++) {
        char *start = (char *)buffer_reserve(f->out, TEXT_NUMBER_MAX + 4), *p = start;

        if (!p)
            return;
        if (!f->first)
            *p++ = json ? ',' : ' ';
        f->first = false;
        if (json)
            *p++ = '"';
        p = text_put_hex(p, load_u64(data + 8 * i, swap));
        if (json)
            *p++ = '"';
        buffer_commit(f->out, (size_t)(p - start));
    }
}

void fields_hex_array(Fields *f, const char *name, const uint8_t *data, size_t n, bool swap) {
    fields_begin_array(f, name);
    fields_hex_items(f, data, n, swap);
    /* Pretty JSON keeps the array in one line. */
    f->first = true;
    fields_end_array(f);
}

void fields_bool(Fields *f, const char *name, bool v) {
    begin(f, name);
    if (f->format != FIELDS_TEXT)
        text_puts(f->out, v ? "true" : "false");
    else
        text_puts(f->out, v ? "yes" : "no");
}

void fields_double(Fields *f, const char *name, double v) {
    begin(f, name);
    if (isfinite(v))
        text_printf(f->out, "%.17g", v);
    else
        text_puts(f->out, "null");
}

void fields_null(Fields *f, const char *name) {
    begin(f, name);
    text_puts(f->out, f->format != FIELDS_TEXT ? "null" : "-");
}

void fields_time_ns(Fields *f, const char *name, uint64_t time_ns) {
    begin(f, name);
    if (f->format != FIELDS_TEXT)
        text_u64(f->out, time_ns);
    else
        text_time_ns(f->out, time_ns);
}

void fields_str(Fields *f, const char *name, const char *s) {
    fields_bytes(f, name, (Bytes){.data = (const uint8_t *)s, .size = strlen(s)});
}

void fields_bytes(Fields *f, const char *name, Bytes bytes) {
    begin(f, name);
    if (f->format != FIELDS_TEXT)
        text_json_string(f->out, bytes);
    else
        text_escape(f->out, bytes);
}

void fields_hex_bytes(Fields *f, const char *name, Bytes bytes) {
    bool json = f->format != FIELDS_TEXT;

    begin(f, name);
    if (json)
        text_putc(f->out, '"');
    text_hex_bytes(f->out, bytes);
    if (json)
        text_putc(f->out, '"');
}

void fields_flags(Fields *f, const char *name, uint64_t bits, const char *const *names, size_t n) {
    uint64_t rest = 0;

    fields_begin_array(f, name);
    while (bits) {
        unsigned i = (unsigned)__builtin_ctzll(bits);
        uint64_t bit = 1ULL << i;

        if (i < n && names[i])
            fields_str(f, NULL, names[i]);
        else
            rest |= bit;
        bits &= ~bit;
    }
    if (rest)
        fields_hex(f, NULL, rest);
    fields_end_array(f);
}

void fields_choice(Fields *f, const char *name, uint64_t v, const char *const *names, size_t n) {
    if (v < n && names[v])
        fields_str(f, name, names[v]);
    else
        fields_u64(f, name, v);
}
