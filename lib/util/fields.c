/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/fields.h"

#include <math.h>
#include <string.h>

#include "util/text.h"

/*
 * The two outputs of a description. The only state is the depth, and whether the innermost
 * container has a member already. The end of a container always makes the next member of the outer
 * one a later one, so a single flag is enough.
 */

Fields fields_to(Buffer *out, FieldsFormat format) {
    return (Fields){.out = out, .format = format, .first = true};
}

enum { NAME_ROOM = 64, NUMBER_ROOM = 48 };

static void fields_close_member(Fields *f, const char *end) {
    f->out->size = (size_t)(end - (char *)f->out->data);
}

static void fields_break_line(Fields *f) {
    text_putc(f->out, '\n');
    for (unsigned i = 0; i < f->depth; i++)
        text_puts(f->out, "  ");
}

/*
 * Appends the separator and the name. Returns where to write the value, with space for NUMBER_ROOM
 * bytes; fields_close_member() ends it. NULL without memory. Names are short, so they are copied
 * without measuring them first.
 */
static char *fields_open_member(Fields *f, const char *name) {
    bool json = f->format != FIELDS_TEXT, pretty = f->format == FIELDS_JSON_PRETTY;
    char *p = (char *)buffer_reserve(f->out, NAME_ROOM + NUMBER_ROOM);

    if (!p)
        return NULL;
    if (!f->first)
        *p++ = json ? ',' : ' ';
    f->first = false;
    if (pretty && f->depth > 0) {
        fields_close_member(f, p);
        fields_break_line(f);
        p = (char *)buffer_reserve(f->out, NAME_ROOM + NUMBER_ROOM);
    }
    if (!name || !p)
        return p;
    if (json)
        *p++ = '"';
    for (size_t n = 0; *name && n < NAME_ROOM - 8; n++)
        *p++ = *name++;
    if (*name) {
        fields_close_member(f, p);
        text_puts(f->out, name);
        p = (char *)buffer_reserve(f->out, NAME_ROOM + NUMBER_ROOM);
        if (!p)
            return NULL;
    }
    if (json) {
        *p++ = '"';
        *p++ = ':';
    }
    if (!json || pretty)
        *p++ = ' ';
    return p;
}

/* Appends only the separator and the name. */
static void fields_begin(Fields *f, const char *name) {
    char *p = fields_open_member(f, name);

    if (p)
        fields_close_member(f, p);
}

static void fields_open_container(Fields *f, const char *name, char json, const char *text) {
    fields_begin(f, name);
    if (f->format != FIELDS_TEXT)
        text_putc(f->out, json);
    else if (f->depth > 0)
        text_puts(f->out, text);
    f->depth++;
    f->first = true;
}

static void fields_close_container(Fields *f, char json, const char *text) {
    f->depth--;
    if (f->format == FIELDS_JSON_PRETTY && !f->first)
        fields_break_line(f);
    if (f->format != FIELDS_TEXT)
        text_putc(f->out, json);
    else if (f->depth > 0)
        text_puts(f->out, text);
    f->first = false;
}

void fields_begin_object(Fields *f, const char *name) {
    fields_open_container(f, name, '{', "{");
}

void fields_end_object(Fields *f) {
    fields_close_container(f, '}', "}");
}

void fields_begin_array(Fields *f, const char *name) {
    fields_open_container(f, name, '[', "[");
}

void fields_end_array(Fields *f) {
    fields_close_container(f, ']', "]");
}

size_t fields_begin_list(Fields *f, const char *name) {
    fields_begin_array(f, name);
    return 0;
}

bool fields_next(Fields *f, size_t i, size_t n) {
    if (i > 0)
        fields_end_object(f);
    if (i < n)
        fields_begin_object(f, NULL);
    else
        fields_end_array(f);
    return i < n;
}

void fields_u64(Fields *f, const char *name, uint64_t v) {
    char *p = fields_open_member(f, name);

    if (p)
        fields_close_member(f, text_put_u64(p, v));
}

void fields_i64(Fields *f, const char *name, int64_t v) {
    char *p = fields_open_member(f, name);

    if (!p)
        return;
    if (v < 0)
        *p++ = '-';
    fields_close_member(f, text_put_u64(p, v < 0 ? -(uint64_t)v : (uint64_t)v));
}

void fields_hex(Fields *f, const char *name, uint64_t v) {
    bool json = f->format != FIELDS_TEXT;
    char *p = fields_open_member(f, name);

    if (!p)
        return;
    if (json)
        *p++ = '"';
    p = text_put_hex(p, v);
    if (json)
        *p++ = '"';
    fields_close_member(f, p);
}

/* Addresses of a call chain mostly share their upper half, so its text is made once. */
void fields_hex_items(Fields *f, const uint8_t *data, size_t n, bool swap) {
    bool json = f->format != FIELDS_TEXT;
    char upper_text[TEXT_NUMBER_MAX] = {};
    uint64_t upper = 0;
    size_t upper_n = 0;
    char *p = (char *)buffer_reserve(f->out, n * 2 * TEXT_NUMBER_MAX);

    if (n == 0 || !p)
        return;
    for (size_t i = 0; i < n; i++) {
        uint64_t v = load_u64(data + 8 * i, swap);

        if (!f->first)
            *p++ = json ? ',' : ' ';
        f->first = false;
        if (json)
            *p++ = '"';
        if (v >> 32 == 0)
            p = text_put_hex(p, v);
        else {
            if (v >> 32 != upper) {
                upper = v >> 32;
                upper_n = (size_t)(text_put_hex(upper_text, upper) - upper_text);
            }
            memcpy(p, upper_text, sizeof(upper_text));
            p = text_put_hex_half(p + upper_n, (uint32_t)v);
        }
        if (json)
            *p++ = '"';
    }
    fields_close_member(f, p);
}

void fields_hex_array(Fields *f, const char *name, const uint8_t *data, size_t n, bool swap) {
    fields_begin_array(f, name);
    fields_hex_items(f, data, n, swap);
    /* Pretty JSON prints the array on one line. */
    f->first = true;
    fields_end_array(f);
}

void fields_bool(Fields *f, const char *name, bool v) {
    fields_begin(f, name);
    if (f->format != FIELDS_TEXT)
        text_puts(f->out, v ? "true" : "false");
    else
        text_puts(f->out, v ? "yes" : "no");
}

void fields_double(Fields *f, const char *name, double v) {
    fields_begin(f, name);
    if (isfinite(v))
        text_printf(f->out, "%.17g", v);
    else
        text_puts(f->out, "null");
}

void fields_ms_of_ns(Fields *f, const char *name, uint64_t ns) {
    char *p = fields_open_member(f, name);
    unsigned rest = (unsigned)(ns % 1000000);

    if (!p)
        return;
    p = text_put_u64(p, ns / 1000000);
    if (rest > 0) {
        *p++ = '.';
        for (unsigned place = 100000; rest > 0; place /= 10) {
            *p++ = (char)('0' + rest / place);
            rest %= place;
        }
    }
    fields_close_member(f, p);
}

void fields_null(Fields *f, const char *name) {
    fields_begin(f, name);
    text_puts(f->out, f->format != FIELDS_TEXT ? "null" : "-");
}

static void fields_put_bytes(Fields *f, Bytes bytes) {
    if (f->format != FIELDS_TEXT)
        text_json_string(f->out, bytes);
    else
        text_escape(f->out, bytes);
}

void fields_time_ns(Fields *f, const char *name, uint64_t time_ns) {
    char *p = fields_open_member(f, name);

    if (p)
        fields_close_member(f, f->format != FIELDS_TEXT ? text_put_u64(p, time_ns)
                                                        : text_put_time_ns(p, time_ns));
}

void fields_str(Fields *f, const char *name, const char *s) {
    bool json = f->format != FIELDS_TEXT;
    char *p = fields_open_member(f, name);
    size_t n = 0;

    if (!p)
        return;
    for (; n < NUMBER_ROOM - 2 && text_is_plain((uint8_t)s[n]); n++)
        p[n + json] = s[n];
    if (s[n]) {
        fields_close_member(f, p);
        fields_put_bytes(f, (Bytes){.data = (const uint8_t *)s, .size = strlen(s)});
        return;
    }
    if (json)
        p[0] = p[n + 1] = '"';
    fields_close_member(f, p + n + 2 * json);
}

void fields_bytes(Fields *f, const char *name, Bytes bytes) {
    fields_begin(f, name);
    fields_put_bytes(f, bytes);
}

void fields_hex_bytes(Fields *f, const char *name, Bytes bytes) {
    bool json = f->format != FIELDS_TEXT;

    fields_begin(f, name);
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
