/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One description of a feature's body, three uses. A feature's code function walks the members of
 * a PdEnvironment in the order in which they lie on disk; the mode says whether each step reads
 * the member, writes it, or frees it. So what is read, written and freed cannot drift apart.
 *
 * Reading is bounded: a count must fit into the bytes that are left, and all counted things of one
 * body share a budget, because an empty string costs more in memory than its four bytes on disk.
 * The first thing that does not fit fails the codec for good; what was built so far is freed by a
 * second walk in CODEC_CLEAR.
 */

#include "perfdata/feature/environment.h"
#include "util/buffer.h"
#include "util/bytes.h"

enum {
    CODEC_ITEMS_MAX = 1 << 20, /* counted things in one feature */
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
/* Takes from the budget what costs more than its bytes. */
void codec_spend(Codec *c, size_t n);

void codec_u32(Codec *c, uint32_t *v);
void codec_u64(Codec *c, uint64_t *v);
/* A version or the like, which must be what we know. */
void codec_u32_is(Codec *c, uint32_t v);
void codec_u64_is(Codec *c, uint64_t v);
/* u32 length and as many bytes, padded with zeros. */
void codec_string(Codec *c, char **s);
void codec_strings(Codec *c, PdStrings *strings);
/* *n bytes as they are, or *n words; *n was read before, and becomes 0 when they are not there. */
void codec_bytes(Codec *c, uint8_t **data, size_t *n);
void codec_u64s(Codec *c, uint64_t **words, size_t *n);

/* A count, on disk as u32 or u64. */
void codec_count_u32(Codec *c, size_t *n);
void codec_count_u64(Codec *c, size_t *n);
/*
 * Room for *n items of which each takes `least` bytes on disk or more; *n becomes 0 when they
 * cannot be there. The caller then walks the items, and ends with codec_end(), which frees them in
 * CODEC_CLEAR.
 */
#define codec_begin(c, n, items, least)                                                            \
    codec_begin_sized((c), (n), (void **)(items), sizeof(**(items)), (least))
#define codec_end(c, n, items) codec_end_items((c), (n), (void **)(items))
void codec_begin_sized(Codec *c, size_t *n, void **items, size_t each, size_t least);
void codec_end_items(Codec *c, size_t *n, void **items);
/* One item more, zeroed, while reading what has no count; NULL when there can be none. */
#define codec_grow(c, n, items)                                                                    \
    ((__typeof__(*(items)))codec_grow_sized((c), (n), (void **)(items), sizeof(**(items))))
void *codec_grow_sized(Codec *c, size_t *n, void **items, size_t each);
