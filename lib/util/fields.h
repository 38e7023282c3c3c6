/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One description, two outputs. Code that knows a structure names its fields once; a Fields turns
 * them into one line of text (`pid 12 comm sh chain [0x1 0x2]`) or into JSON. Inside an array the
 * name is NULL. Addresses and masks use fields_hex(): 0x… in text, a string "0x…" in JSON; counts,
 * ids and times are plain integers. Bytes from outside must use fields_bytes(), which escapes them.
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
    bool first; /* the innermost object or array is empty */
} Fields;

Fields fields_to(Buffer *out, FieldsFormat format);

void fields_begin_object(Fields *f, const char *name);
void fields_end_object(Fields *f);
void fields_begin_array(Fields *f, const char *name);
void fields_end_array(Fields *f);

/*
 * An array of n objects, in a loop that must not be left early:
 *     for (size_t i = fields_begin_list(f, "caches"); fields_next(f, i, n); i++)
 *         fields_u64(f, "level", caches[i].level);
 */
size_t fields_begin_list(Fields *f, const char *name);
bool fields_next(Fields *f, size_t i, size_t n);

void fields_u64(Fields *f, const char *name, uint64_t v);
void fields_i64(Fields *f, const char *name, int64_t v);
void fields_hex(Fields *f, const char *name, uint64_t v);
void fields_bool(Fields *f, const char *name, bool v);
void fields_double(Fields *f, const char *name, double v);
void fields_null(Fields *f, const char *name);
/* Nanoseconds: text as seconds with nine decimals, JSON as an integer. */
void fields_time_ns(Fields *f, const char *name, uint64_t time_ns);
/* Nanoseconds as milliseconds, exact, with up to six decimals. */
void fields_ms_of_ns(Fields *f, const char *name, uint64_t ns);
/* For our own strings; escaped as well. */
void fields_str(Fields *f, const char *name, const char *s);
void fields_bytes(Fields *f, const char *name, Bytes bytes);
/* An array of n u64 (unaligned, maybe in the other byte order), printed like fields_hex(). */
void fields_hex_array(Fields *f, const char *name, const uint8_t *data, size_t n, bool swap);
/* Appends the numbers to the innermost array. */
void fields_hex_items(Fields *f, const uint8_t *data, size_t n, bool swap);
/* Binary content as hex digits. */
void fields_hex_bytes(Fields *f, const char *name, Bytes bytes);
/* An array with the names of the set flags, names[i] for bit i (NULL: unnamed); unnamed bits come
 * last, as one hex number. */
void fields_flags(Fields *f, const char *name, uint64_t bits, const char *const *names, size_t n);
/* names[v], or the number if it has no name. */
void fields_choice(Fields *f, const char *name, uint64_t v, const char *const *names, size_t n);
