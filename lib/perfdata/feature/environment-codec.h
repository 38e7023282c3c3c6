/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One description of a feature's body with three uses. A feature's code function visits the members
 * of a PdEnvironment in their order on disk; the mode says whether each step reads the member,
 * writes it, or frees it. So reading, writing and freeing cannot disagree.
 *
 * Reading is bounded: a count must fit into the remaining bytes, and all counted items of a body
 * share a budget, because an empty string needs more memory than its four bytes on disk. The first
 * item that does not fit makes the codec fail for good; a second pass in CODEC_CLEAR frees what was
 * built so far.
 */

#include "perfdata/feature/environment.h"
#include "util/buffer.h"
#include "util/bytes.h"

enum {
    CODEC_ITEMS_MAX = 1 << 20, /* counted items of one feature */
    CODEC_STRING_ALIGN = 64,   /* NAME_ALIGN of perf */
};

typedef enum CodecMode { CODEC_READ, CODEC_WRITE, CODEC_CLEAR } CodecMode;

typedef struct Codec {
    CodecMode mode;
    bool swap;
    int error; /* 0, -EBADMSG or -ENOMEM */
    Cursor in;
    Buffer *out;
    size_t budget;
} Codec;

void codec_fail(Codec *c, int error);
/* Takes items from the budget that need more memory than bytes on disk. */
void codec_spend(Codec *c, size_t n);

void codec_u32(Codec *c, uint32_t *v);
void codec_u64(Codec *c, uint64_t *v);
/* A version or another number that must have this value. */
void codec_u32_is(Codec *c, uint32_t v);
void codec_u64_is(Codec *c, uint64_t v);
/* A u32 length and as many bytes, padded with zeros. */
void codec_string(Codec *c, char **s);
void codec_strings(Codec *c, PdStrings *strings);
/* *n raw bytes, or *n words; *n was read before, and becomes 0 if the bytes are missing. */
void codec_bytes(Codec *c, uint8_t **data, size_t *n);
void codec_u64s(Codec *c, uint64_t **words, size_t *n);

/* A count, stored as u32 or u64. */
void codec_count_u32(Codec *c, size_t *n);
void codec_count_u64(Codec *c, size_t *n);
/*
 * A list of *n items, each of which takes at least `least` bytes on disk, in a loop that must not
 * be left early: for (size_t i = codec_list(c, &n, &items, 4); codec_next(c, i, &n, &items); i++)
 *         codec_u32(c, &items[i].id);
 * codec_list() is a u32 count, then codec_begin(), which allocates the items; *n becomes 0 if they
 * do not fit. codec_next() ends with codec_end(), which frees them in CODEC_CLEAR.
 */
#define codec_list(c, n, items, least)                                                             \
    (codec_count_u32((c), (n)), codec_begin((c), (n), (items), (least)))
#define codec_next(c, i, n, items) ((i) < *(n) || codec_end((c), (n), (items)))
#define codec_begin(c, n, items, least)                                                            \
    codec_begin_sized((c), (n), (void **)(items), sizeof(**(items)), (least))
#define codec_end(c, n, items) codec_end_items((c), (n), (void **)(items))
/* Returns 0, the number of the first item. */
size_t codec_begin_sized(Codec *c, size_t *n, void **items, size_t each, size_t least);
/* Returns false: there is no next item. */
bool codec_end_items(Codec *c, size_t *n, void **items);
/* Appends a zeroed item while reading a list without a count; NULL if there can be none. */
#define codec_grow(c, n, items)                                                                    \
    ((__typeof__(*(items)))codec_grow_sized((c), (n), (void **)(items), sizeof(**(items))))
void *codec_grow_sized(Codec *c, size_t *n, void **items, size_t each);
