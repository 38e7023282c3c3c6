/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the JSON files of the store share, in both directions: structs whose plain members are rows
 * of a table, lists, numbers, and strings of arbitrary bytes. An encoder returns NULL when memory
 * ran out. A decoder checks everything and returns -EBADMSG for what its encoder cannot have
 * written.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perfdata/feature/coverage.h"
#include "util/buffer.h"

enum { CODEC_TEXT_MAX = 256 }; /* of a string, with its NUL */

typedef enum CodecKind {
    CODEC_NUMBER, /* uint32_t or uint64_t */
    CODEC_TEXT,   /* char[size] */
    CODEC_FLAG,   /* bool */
    CODEC_WORD,   /* bool or enumeration; words[value] */
} CodecKind;

typedef struct CodecRow {
    CodecKind kind;
    const char *name;
    size_t offset, size;
    bool is_new; /* files of an earlier version lack it: 0, false or "" */
    const char *const *words;
    size_t n_words;
} CodecRow;

#define CODEC_ROW(type, member)                                                                    \
    .name = #member, .offset = offsetof(type, member), .size = sizeof(((type *)NULL)->member)

/* Adds the members to a JSON object; -ENOMEM. */
int codec_add_rows(json_t *json, const CodecRow *rows, size_t n, const void *from);
int codec_take_rows(const json_t *json, const CodecRow *rows, size_t n, void *ret);

/* An array of what add() appends for each of n items: one element or none. It returns what
 * json_array_append_new() returned. */
typedef int CodecAdd(json_t *list, const void *from, size_t i);
json_t *codec_array(const void *from, size_t n, CodecAdd *add);
/* take() reads each of at most `max` elements. */
typedef int CodecTake(void *ret, const json_t *element);
int codec_take_list(const json_t *json, size_t max, void *ret, CodecTake *take);

/* With `what`, the reason is also added as a sentence. A gap without an end has the largest number.
 * A reason that a later version added is read as PD_GAP_UNKNOWN. */
json_t *codec_gap(const PdGap *gap, bool what);
int codec_take_gap(const json_t *json, PdGap *ret);
PdGapReason codec_take_reason(const json_t *json);
/* A time span, of which the start is not behind the end. */
int codec_take_span(const json_t *json, uint64_t *ret_from_ns, uint64_t *ret_to_ns);

json_t *codec_number(uint64_t v);
/* Escapes bytes that are not printable text as \xNN. */
json_t *codec_text(const char *s);
/* -EBADMSG if codec_text() cannot have produced it, or if it is too long. */
int codec_take_text(const json_t *json, char *ret, size_t size);
int codec_take_number(const json_t *json, uint64_t max, uint64_t *ret);

/* A whole file: an object that begins with its version. */
json_t *codec_file(unsigned version);
int codec_write(const json_t *json, size_t flags, Buffer *out);
/* NULL if it is not an object of a version from 1 to this one. */
json_t *codec_read(Bytes bytes, size_t max, unsigned version);
