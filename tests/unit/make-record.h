/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Records made by hand. A Make collects the body in the byte order that it was begun with;
 * make_record() gives it a header and hands out an exact malloc'ed copy, so that a sanitizer sees
 * the first byte read behind its end.
 */

#include "perfdata/record/record.h"
#include "util/buffer.h"

typedef struct Make {
    Buffer body;
    bool swap;
    uint8_t *copy;
} Make;

static inline void make_done(Make *m) {
    buffer_done(&m->body);
    free(m->copy);
    m->copy = NULL;
}

static inline void u8(Make *m, uint8_t v) {
    buffer_append(&m->body, &v, 1);
}

static inline void u16(Make *m, uint16_t v) {
    buffer_u16(&m->body, v, m->swap);
}

static inline void u32(Make *m, uint32_t v) {
    buffer_u32(&m->body, v, m->swap);
}

static inline void u64(Make *m, uint64_t v) {
    buffer_u64(&m->body, v, m->swap);
}

static inline void f64(Make *m, double v) {
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    u64(m, bits);
}

static inline void bytes(Make *m, const char *s, size_t n) {
    buffer_append(&m->body, s, n);
}

/* A string in a field of n bytes, filled up with NUL. */
static inline void text(Make *m, const char *s, size_t n) {
    buffer_append(&m->body, s, strlen(s));
    buffer_zero(&m->body, n - strlen(s));
}

/* The first `size` bytes of the body behind a header. Valid until the next call or make_done(). */
static inline PdRecord make_cut(Make *m, uint32_t type, uint16_t misc, size_t size) {
    size_t whole = PD_RECORD_HEADER_SIZE + size;

    free(m->copy);
    m->copy = malloc(whole);
    assert(m->copy);
    store_u32(m->copy, type, m->swap);
    store_u16(m->copy + 4, misc, m->swap);
    store_u16(m->copy + 6, (uint16_t)whole, m->swap);
    if (size > 0)
        memcpy(m->copy + PD_RECORD_HEADER_SIZE, m->body.data, size);
    return (PdRecord){
        .type = type, .misc = misc, .swap = m->swap, .size = (uint32_t)whole, .data = m->copy};
}

static inline PdRecord make_record(Make *m, uint32_t type, uint16_t misc) {
    return make_cut(m, type, misc, m->body.size);
}
