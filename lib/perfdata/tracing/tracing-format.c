/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/tracing/tracing-format.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "util/macro.h"

/*
 * A tracepoint's `format` file: lines of text that describe, as C declarations, where each field is
 * in its raw data. Only what is needed to print a value is kept: position, length, and one of five
 * kinds. The common_* fields are skipped, because they repeat what a sample has anyway. A text that
 * is invalid in some part is rejected completely.
 *
 * Printing trusts nothing: a field outside of the raw data is null, and all arrays of one record
 * together print no more bytes than the record has, even if they overlap.
 */

enum { FIELDS_MAX = 256 };

static Bytes tracing_format_trim(Bytes b) {
    while (b.size > 0 && (b.data[0] == ' ' || b.data[0] == '\t')) {
        b.data++;
        b.size--;
    }
    while (b.size > 0 && strchr(" \t\r", b.data[b.size - 1]))
        b.size--;
    return b;
}

static bool tracing_format_strip_front(Bytes *b, const char *word) {
    size_t n = strlen(word);

    if (b->size < n || memcmp(b->data, word, n) != 0)
        return false;
    b->data += n;
    b->size -= n;
    return true;
}

/* Returns the text before the next `end` and skips both; everything if there is none. */
static Bytes tracing_format_take_until(Bytes *b, char end) {
    const uint8_t *p = b->size > 0 ? memchr(b->data, end, b->size) : NULL;
    size_t n = p ? (size_t)(p - b->data) : b->size, passed = p ? n + 1 : n;
    Bytes head = {.data = b->data, .size = n};

    b->data += passed;
    b->size -= passed;
    return head;
}

static bool tracing_format_parse_number(Bytes b, uint32_t *ret) {
    uint64_t v = 0;

    b = tracing_format_trim(b);
    if (b.size == 0 || b.size > 10)
        return false;
    for (size_t i = 0; i < b.size; i++) {
        if (b.data[i] < '0' || b.data[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(b.data[i] - '0');
    }
    if (v > UINT32_MAX)
        return false;
    *ret = (uint32_t)v;
    return true;
}

static bool tracing_format_has_word(Bytes b, const char *word) {
    return b.size > 0 && memmem(b.data, b.size, word, strlen(word));
}

static bool tracing_format_is_identifier(uint8_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The size of an integer type, 0 if it is unknown. */
static uint32_t tracing_format_size_of_type(Bytes type, unsigned long_size) {
    /* clang-format off */
    static const struct { const char *word; uint32_t size; } types[] = {
        {"char", 1}, {"u8", 1}, {"s8", 1}, {"int8", 1}, {"bool", 1},
        {"short", 2}, {"16", 2}, {"32", 4}, {"64", 8}, {"long long", 8},
        {"long", 0}, {"int", 4}, {"unsigned", 4}, {"pid_t", 4}, {"size_t", 0},
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (tracing_format_has_word(type, types[i].word))
            return types[i].size ? types[i].size : long_size;
    return 0;
}

static bool tracing_format_is_number_size(uint32_t size) {
    return size == 1 || size == 2 || size == 4 || size == 8;
}

/* Parses "type name[count]" after a __data_loc or __rel_loc was removed. */
static int tracing_format_parse_declaration(Bytes d, unsigned long_size, TracingField *f,
                                            Bytes *ret_name) {
    bool array = false, dynamic = f->place != TRACING_FIXED;
    uint32_t count = 0;
    Bytes type, name;

    d = tracing_format_trim(d);
    if (d.size > 0 && d.data[d.size - 1] == ']') {
        const uint8_t *open = memrchr(d.data, '[', d.size);

        if (!open)
            return -EBADMSG;
        array = true;
        (void)tracing_format_parse_number((Bytes){open + 1, (size_t)(d.data + d.size - 2 - open)},
                                          &count);
        d.size = (size_t)(open - d.data);
    }
    d = tracing_format_trim(d);
    name = (Bytes){.data = d.data + d.size};
    while (name.size < d.size && tracing_format_is_identifier(name.data[-1])) {
        name.data--;
        name.size++;
    }
    type = tracing_format_trim((Bytes){.data = d.data, .size = d.size - name.size});
    if (name.size == 0 || type.size == 0)
        return -EBADMSG;

    if (!array && !dynamic) {
        f->kind = !tracing_format_is_number_size(f->size) ? TRACING_BYTES
                  : tracing_format_has_word(type, "*")    ? TRACING_POINTER
                                                          : TRACING_INTEGER;
    } else {
        if (!dynamic && count > 0 && f->size % count == 0)
            f->element = f->size / count;
        else
            f->element = tracing_format_size_of_type(type, long_size);
        if (tracing_format_has_word(type, "char") && !tracing_format_has_word(type, "unsigned"))
            f->kind = TRACING_STRING;
        else
            f->kind = tracing_format_is_number_size(f->element) && f->element > 1 ? TRACING_NUMBERS
                                                                                  : TRACING_BYTES;
    }
    *ret_name = name;
    return 0;
}

static char *tracing_format_copy_text(Bytes b) {
    return strndup((const char *)b.data, b.size);
}

/* Parses the part of a line after "field:". */
static int tracing_format_parse_field(Bytes line, unsigned long_size, TracingFormat *format) {
    Bytes declaration = tracing_format_trim(tracing_format_take_until(&line, ';')), name = {};
    TracingField f = {}, *p;
    bool has_offset = false, has_size = false;
    uint32_t v;
    int r;

    while (line.size > 0) {
        Bytes part = tracing_format_trim(tracing_format_take_until(&line, ';'));

        if (tracing_format_strip_front(&part, "offset:"))
            has_offset = tracing_format_parse_number(part, &f.offset);
        else if (tracing_format_strip_front(&part, "size:"))
            has_size = tracing_format_parse_number(part, &f.size);
        else if (tracing_format_strip_front(&part, "signed:"))
            f.is_signed = tracing_format_parse_number(part, &v) && v;
    }
    if (!has_offset || !has_size)
        return -EBADMSG;
    if (tracing_format_strip_front(&declaration, "__data_loc "))
        f.place = TRACING_DATA_LOC;
    else if (tracing_format_strip_front(&declaration, "__rel_loc "))
        f.place = TRACING_REL_LOC;
    if (f.place != TRACING_FIXED && f.size != 4)
        return -EBADMSG;
    r = tracing_format_parse_declaration(declaration, long_size, &f, &name);
    if (r < 0)
        return r;
    if (tracing_format_strip_front(&(Bytes){name.data, name.size}, "common_"))
        return 0;
    if (format->n_fields >= FIELDS_MAX)
        return -EBADMSG;
    p = reallocarray(format->fields, format->n_fields + 1, sizeof(*p));
    if (!p)
        return -ENOMEM;
    format->fields = p;
    f.name = tracing_format_copy_text(name);
    if (!f.name)
        return -ENOMEM;
    p[format->n_fields++] = f;
    return 0;
}

static int tracing_format_set_name(TracingFormat *format, Bytes system, Bytes name) {
    char *p;

    name = tracing_format_trim(name);
    if (format->name || name.size == 0 || system.size == 0)
        return -EBADMSG;
    /* Both are names of folders in tracefs. One long name for many formats would take much memory.
     */
    if (name.size > NAME_MAX || system.size > NAME_MAX)
        return -EBADMSG;
    p = malloc(system.size + name.size + 2);
    if (!p)
        return -ENOMEM;
    memcpy(p, system.data, system.size);
    p[system.size] = ':';
    memcpy(p + system.size + 1, name.data, name.size);
    p[system.size + 1 + name.size] = '\0';
    format->name = p;
    return 0;
}

int tracing_format_parse(Bytes system, Bytes text, unsigned long_size, TracingFormat *ret) {
    _cleanup_(tracing_format_done) TracingFormat format = {};
    bool has_id = false;
    uint32_t id = 0;
    int r = 0;

    while (text.size > 0 && r == 0) {
        Bytes line = tracing_format_trim(tracing_format_take_until(&text, '\n'));

        if (tracing_format_strip_front(&line, "name:"))
            r = tracing_format_set_name(&format, system, line);
        else if (tracing_format_strip_front(&line, "ID:"))
            has_id = tracing_format_parse_number(line, &id);
        else if (tracing_format_strip_front(&line, "field:") ||
                 tracing_format_strip_front(&line, "field special:"))
            r = tracing_format_parse_field(line, long_size, &format);
        else if (tracing_format_strip_front(&line, "print fmt:"))
            break;
    }
    if (r < 0)
        return r;
    if (!format.name || !has_id)
        return -EBADMSG;
    format.id = id;
    *ret = format;
    format = (TracingFormat){};
    return 0;
}

void tracing_format_done(TracingFormat *format) {
    for (size_t i = 0; i < format->n_fields; i++)
        free(format->fields[i].name);
    free(format->fields);
    free(format->name);
    *format = (TracingFormat){};
}

static void tracing_format_describe_number(const char *name, const uint8_t *p, uint32_t size,
                                           bool is_signed, bool swap, Fields *f) {
    uint64_t v = load_uint(p, size, swap);
    unsigned unused = 64 - size * 8;

    if (is_signed)
        fields_i64(f, name, (int64_t)(v << unused) >> unused);
    else
        fields_u64(f, name, v);
}

static void tracing_format_describe_array(const TracingField *field, Bytes b, bool swap,
                                          Fields *f) {
    Cursor c = cursor_of(b.data, b.size, swap);

    switch (field->kind) {
    case TRACING_STRING:
        fields_bytes(f, field->name, cursor_string(&c));
        return;
    case TRACING_NUMBERS:
        fields_begin_array(f, field->name);
        for (size_t i = 0; i < b.size / field->element; i++)
            tracing_format_describe_number(NULL, b.data + i * field->element, field->element,
                                           field->is_signed, swap, f);
        fields_end_array(f);
        return;
    default:
        fields_hex_bytes(f, field->name, b);
    }
}

/* Finds the content of the field; false if it is outside of the raw data. */
static bool tracing_format_locate(const TracingField *field, Bytes raw, bool swap, Bytes *ret) {
    uint64_t offset = field->offset, size = field->size;

    if (offset > raw.size || size > raw.size - offset)
        return false;
    if (field->place != TRACING_FIXED) {
        uint32_t location = load_u32(raw.data + offset, swap);

        offset = (field->place == TRACING_REL_LOC ? offset + 4 : 0) + (location & 0xffff);
        size = location >> 16;
        if (offset > raw.size || size > raw.size - offset)
            return false;
    }
    *ret = (Bytes){.data = raw.data + offset, .size = (size_t)size};
    return true;
}

void tracing_format_describe(const TracingFormat *format, Bytes raw, bool swap, Fields *f) {
    size_t budget = raw.size;

    for (size_t i = 0; i < format->n_fields; i++) {
        const TracingField *field = &format->fields[i];
        Bytes b;

        if (!tracing_format_locate(field, raw, swap, &b)) {
            fields_null(f, field->name);
            continue;
        }
        if (field->kind == TRACING_POINTER)
            fields_hex(f, field->name, load_uint(b.data, field->size, swap));
        else if (field->kind == TRACING_INTEGER)
            tracing_format_describe_number(field->name, b.data, field->size, field->is_signed, swap,
                                           f);
        else if (b.size > budget)
            fields_null(f, field->name);
        else {
            budget -= b.size;
            tracing_format_describe_array(field, b, swap, f);
        }
    }
}
