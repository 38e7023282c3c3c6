/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reads untrusted bytes. A Bytes is a borrowed range. A Cursor moves through one: every read is
 * checked against the rest, and the first read that does not fit makes the cursor fail for good, so
 * a parser reads a whole structure and checks once, at the end, whether all of it was there. With
 * `swap` numbers are in the other byte order. Nothing needs to be aligned.
 */

#include <byteswap.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct Bytes {
    const uint8_t *data;
    size_t size;
} Bytes;

typedef struct Cursor {
    const uint8_t *at;
    const uint8_t *end;
    bool swap;
    bool failed;
} Cursor;

static inline uint16_t load_u16(const void *p, bool swap) {
    uint16_t v;

    memcpy(&v, p, sizeof(v));
    return swap ? bswap_16(v) : v;
}

static inline uint32_t load_u32(const void *p, bool swap) {
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return swap ? bswap_32(v) : v;
}

static inline uint64_t load_u64(const void *p, bool swap) {
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return swap ? bswap_64(v) : v;
}

static inline void store_u16(void *p, uint16_t v, bool swap) {
    v = swap ? bswap_16(v) : v;
    memcpy(p, &v, sizeof(v));
}

static inline void store_u32(void *p, uint32_t v, bool swap) {
    v = swap ? bswap_32(v) : v;
    memcpy(p, &v, sizeof(v));
}

static inline void store_u64(void *p, uint64_t v, bool swap) {
    v = swap ? bswap_64(v) : v;
    memcpy(p, &v, sizeof(v));
}

/* A number of 1, 2, 4 or 8 bytes. */
static inline uint64_t load_uint(const void *p, size_t size, bool swap) {
    switch (size) {
    case 1:
        return *(const uint8_t *)p;
    case 2:
        return load_u16(p, swap);
    case 4:
        return load_u32(p, swap);
    default:
        return load_u64(p, swap);
    }
}

static inline void store_uint(void *p, size_t size, uint64_t v, bool swap) {
    switch (size) {
    case 1:
        *(uint8_t *)p = (uint8_t)v;
        break;
    case 2:
        store_u16(p, (uint16_t)v, swap);
        break;
    case 4:
        store_u32(p, (uint32_t)v, swap);
        break;
    default:
        store_u64(p, v, swap);
    }
}

static inline Cursor cursor_of(const void *data, size_t size, bool swap) {
    /* An empty range may be NULL, and adding even 0 to NULL is undefined. */
    const uint8_t *at = data ? data : (const void *)"";

    return (Cursor){.at = at, .end = at + size, .swap = swap};
}

static inline size_t cursor_left(const Cursor *c) {
    return (size_t)(c->end - c->at);
}

static inline void cursor_fail(Cursor *c) {
    c->failed = true;
    c->at = c->end;
}

/* The next n bytes, or NULL (and the cursor fails) when fewer are left. */
static inline const uint8_t *cursor_take(Cursor *c, uint64_t n) {
    const uint8_t *p = c->at;

    if (n > cursor_left(c)) {
        cursor_fail(c);
        return NULL;
    }
    c->at += n;
    return p;
}

static inline Bytes cursor_bytes(Cursor *c, uint64_t n) {
    const uint8_t *p = cursor_take(c, n);

    return (Bytes){.data = p, .size = p ? (size_t)n : 0};
}

/* n elements of `each` bytes; the product cannot overflow. */
static inline Bytes cursor_array(Cursor *c, uint64_t n, size_t each) {
    if (n > cursor_left(c) / each) {
        cursor_fail(c);
        return (Bytes){};
    }
    return cursor_bytes(c, n * each);
}

static inline uint8_t cursor_u8(Cursor *c) {
    const uint8_t *p = cursor_take(c, 1);

    return p ? *p : 0;
}

static inline uint16_t cursor_u16(Cursor *c) {
    const uint8_t *p = cursor_take(c, 2);

    return p ? load_u16(p, c->swap) : 0;
}

static inline uint32_t cursor_u32(Cursor *c) {
    const uint8_t *p = cursor_take(c, 4);

    return p ? load_u32(p, c->swap) : 0;
}

static inline uint64_t cursor_u64(Cursor *c) {
    const uint8_t *p = cursor_take(c, 8);

    return p ? load_u64(p, c->swap) : 0;
}

/* Bytes up to a NUL or the end of the range; skips the NUL if there is one. */
static inline Bytes cursor_string(Cursor *c) {
    size_t left = cursor_left(c);
    const uint8_t *p = c->at, *nul = left > 0 ? memchr(p, 0, left) : NULL;
    size_t n = nul ? (size_t)(nul - p) : left;

    c->at += nul ? n + 1 : n;
    return (Bytes){.data = p, .size = n};
}

static inline bool bytes_equal(Bytes a, Bytes b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline bool bytes_equal_str(Bytes a, const char *s) {
    return a.size == strlen(s) && (a.size == 0 || memcmp(a.data, s, a.size) == 0);
}
