/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One description, two outputs. Whoever knows a structure names its fields once; a Fields turns
 * them into one line of text (`pid 12 comm sh chain [0x1 0x2]`) or into JSON. Inside an array the
 * name is NULL. Addresses and masks go by fields_hex(): text 0x…, JSON a string "0x…"; counts, ids
 * and times are plain integers. Bytes from outside always go by fields_bytes(), which escapes.
 */

#include "util/buffer.h"
#include "util/bytes.h"

typedef enum FieldsFormat {
    FIELDS_TEXT,
    FIELDS_JSON,        /* one line */
    FIELDS_JSON_PRETTY, /* indented by two spaces */
} FieldsFormat;

typedef struct Fields {
    Buffer *out;
    FieldsFormat format;
    unsigned depth;
    bool first; /* nothing yet in the innermost object or array */
} Fields;

Fields fields_to(Buffer *out, FieldsFormat format);

void fields_begin_object(Fields *f, const char *name);
void fields_end_object(Fields *f);
void fields_begin_array(Fields *f, const char *name);
void fields_end_array(Fields *f);

void fields_u64(Fields *f, const char *name, uint64_t v);
void fields_i64(Fields *f, const char *name, int64_t v);
void fields_hex(Fields *f, const char *name, uint64_t v);
void fields_bool(Fields *f, const char *name, bool v);
void fields_double(Fields *f, const char *name, double v);
void fields_null(Fields *f, const char *name);
/* Nanoseconds: text as seconds with nine decimals, JSON as an integer. */
void fields_time_ns(Fields *f, const char *name, uint64_t time_ns);
/* Our own words: escaped all the same. */
void fields_str(Fields *f, const char *name, const char *s);
void fields_bytes(Fields *f, const char *name, Bytes bytes);
/* An array of n u64 (unaligned, perhaps in the other byte order) as by fields_hex(). */
void fields_hex_array(Fields *f, const char *name, const uint8_t *data, size_t n, bool swap);
/* The same as members of the innermost array, behind what stands there. */
void fields_hex_items(Fields *f, const uint8_t *data, size_t n, bool swap);
/* Binary content as hex digits. */
void fields_hex_bytes(Fields *f, const char *name, Bytes bytes);
/* A set of flags as an array of their names, names[i] being that of bit i (NULL: it has none);
 * what has no name comes last, as one number in hex. */
void fields_flags(Fields *f, const char *name, uint64_t bits, const char *const *names, size_t n);
/* names[v], or the number where there is no such name. */
void fields_choice(Fields *f, const char *name, uint64_t v, const char *const *names, size_t n);
