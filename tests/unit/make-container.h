/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Recordings made byte by byte, in every container and both byte orders, for the tests of readers.
 */

#include <zstd.h>

#include "perfdata/reader/reader.h"
#include "util/macro.h"

enum { N_MARKS = 5 };

typedef struct Maker {
    Buffer b;
    bool swap;
} Maker;

_unused_ static bool is_big(bool swap) {
    return swap != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

_unused_ static void put_head(Maker *m, uint32_t type, uint16_t misc, size_t size) {
    buffer_u32(&m->b, type, m->swap);
    buffer_u16(&m->b, misc, m->swap);
    buffer_u16(&m->b, (uint16_t)size, m->swap);
}

_unused_ static void put_text(Maker *m, const char *s, size_t size) {
    buffer_append(&m->b, s, MIN(strlen(s), size));
    buffer_zero(&m->b, size - MIN(strlen(s), size));
}

/* A SAMPLE of the events below: id, time. */
_unused_ static void put_sample(Maker *m, uint64_t id, uint64_t time) {
    put_head(m, PD_RECORD_SAMPLE, PD_MISC_USER, 24);
    buffer_u64(&m->b, id, m->swap);
    buffer_u64(&m->b, time, m->swap);
}

_unused_ static const PdAttr event_attr = {.type = PD_TYPE_SOFTWARE,
                                           .config = 9,
                                           .sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TIME,
                                           .flags = PD_ATTR_SAMPLE_ID_ALL};

_unused_ static void put_string_feature(Buffer *b, const char *s, bool swap) {
    buffer_u32(b, 64, swap);
    buffer_append(b, s, strlen(s));
    buffer_zero(b, 64 - strlen(s));
}

/* EVENT_DESC: n, attr size, then each attr, its n_ids, name, ids. */
_unused_ static void put_event_desc(Buffer *b, bool swap) {
    buffer_u32(b, 2, swap);
    buffer_u32(b, 64, swap);
    for (unsigned i = 0; i < 2; i++) {
        pd_attr_encode(&event_attr, 64, b, swap);
        buffer_u32(b, 1, swap);
        put_string_feature(b, i ? "second" : "first", swap);
        buffer_u64(b, 11 + i, swap);
    }
}

_unused_ static void put_section(Maker *m, uint64_t offset, uint64_t size) {
    buffer_u64(&m->b, offset, m->swap);
    buffer_u64(&m->b, size, m->swap);
}

typedef struct FileShape {
    bool swap, version_1, words_of_32;
    uint64_t data_size; /* UINT64_MAX: true */
    Bytes records;
    bool no_features;
} FileShape;

enum {
    ATTR_ENTRY = 144,
    ATTRS_AT = 104,
    IDS_AT = ATTRS_AT + 2 * ATTR_ENTRY,
    DATA_AT = IDS_AT + 16
};

/* Two events of 64-byte attrs in 144-byte entries, ids 11 and 12, HOSTNAME and EVENT_DESC. */
_unused_ static Buffer make_file(const FileShape *shape) {
    Maker m = {.swap = shape->swap};
    _cleanup_(buffer_done) Buffer desc = {};
    uint8_t bits[32] = {};
    uint64_t end = DATA_AT + shape->records.size;

    put_event_desc(&desc, m.swap);
    if (shape->version_1)
        buffer_append(&m.b, "PERFFILE", 8);
    else
        buffer_u64(&m.b, PD_MAGIC_2, m.swap);
    buffer_u64(&m.b, PD_HEADER_SIZE, m.swap);
    buffer_u64(&m.b, ATTR_ENTRY, m.swap);
    put_section(&m, ATTRS_AT, 2 * ATTR_ENTRY);
    put_section(&m, DATA_AT,
                shape->data_size == UINT64_MAX ? shape->records.size : shape->data_size);
    put_section(&m, end + 2 * 16 + 68 + desc.size, shape->version_1 ? 72 : 0);
    if (!shape->no_features) {
        unsigned word = is_big(m.swap) ? shape->words_of_32 ? 4 : 8 : 1;

        bits[word - 1] |= 1 << PD_FEATURE_HOSTNAME;
        bits[word == 1 ? 1 : word - 2] |= 1 << (PD_FEATURE_EVENT_DESC - 8);
    }
    buffer_append(&m.b, bits, sizeof(bits));
    for (unsigned i = 0; i < 2; i++) {
        pd_attr_encode(&event_attr, 64, &m.b, m.swap);
        buffer_zero(&m.b, ATTR_ENTRY - 64 - 16);
        put_section(&m, IDS_AT + i * 8, 8);
    }
    buffer_u64(&m.b, 11, m.swap);
    buffer_u64(&m.b, 12, m.swap);
    buffer_append(&m.b, shape->records.data, shape->records.size);
    if (!shape->no_features) {
        put_section(&m, end + 32, 68);
        put_section(&m, end + 32 + 68, desc.size);
        put_string_feature(&m.b, "host", m.swap);
        buffer_append(&m.b, desc.data, desc.size);
    }
    if (shape->version_1) {
        buffer_u64(&m.b, 9, m.swap);
        put_text(&m, "legacy", 64);
    }
    return m.b;
}

_unused_ static Buffer make_samples(bool swap, unsigned n) {
    Maker m = {.swap = swap};

    for (unsigned i = 0; i < n; i++)
        put_sample(&m, 11 + i % 2, 1000 + i);
    return m.b;
}

_unused_ static void put_header_attr(Maker *m, uint64_t id) {
    put_head(m, PD_RECORD_HEADER_ATTR, 0, 8 + 64 + 8);
    pd_attr_encode(&event_attr, 64, &m->b, m->swap);
    buffer_u64(&m->b, id, m->swap);
}

_unused_ static void put_feature(Maker *m, uint64_t bit, Bytes body) {
    put_head(m, PD_RECORD_HEADER_FEATURE, 0, 16 + body.size);
    buffer_u64(&m->b, bit, m->swap);
    buffer_append(&m->b, body.data, body.size);
}

_unused_ static void put_pipe_header(Maker *m) {
    buffer_u64(&m->b, PD_MAGIC_2, m->swap);
    buffer_u64(&m->b, PD_PIPE_HEADER_SIZE, m->swap);
}

_unused_ static Buffer make_pipe(bool swap) {
    Maker m = {.swap = swap};
    _cleanup_(buffer_done) Buffer host = {}, desc = {};

    put_string_feature(&host, "host", swap);
    put_event_desc(&desc, swap);
    put_pipe_header(&m);
    put_header_attr(&m, 11);
    put_header_attr(&m, 12);
    put_feature(&m, PD_FEATURE_HOSTNAME, buffer_bytes(&host));
    put_feature(&m, PD_FEATURE_EVENT_DESC, buffer_bytes(&desc));
    put_feature(&m, 32, (Bytes){});
    put_sample(&m, 12, 1000);
    return m.b;
}

_unused_ static void put_chunk(Maker *m, uint32_t type, Bytes frame) {
    size_t pad = type == PD_RECORD_COMPRESSED2 ? ALIGN8(frame.size) - frame.size : 0;

    put_head(m, type, 0, 8 + (type == PD_RECORD_COMPRESSED2 ? 8 : 0) + frame.size + pad);
    if (type == PD_RECORD_COMPRESSED2)
        buffer_u64(&m->b, frame.size, m->swap);
    buffer_append(&m->b, frame.data, frame.size);
    buffer_zero(&m->b, pad);
}

/* Feeds `bytes` in pieces into one endless stream, flushed after each, one record a piece. */
_unused_ static void put_stream(Maker *m, uint32_t type, Bytes bytes, size_t piece,
                                bool end_frames) {
    ZSTD_CCtx *z = ZSTD_createCCtx();
    uint8_t out[4096];

    for (size_t at = 0; at < bytes.size; at += piece) {
        ZSTD_inBuffer in = {.src = bytes.data + at, .size = MIN(piece, bytes.size - at)};
        ZSTD_outBuffer to = {.dst = out, .size = sizeof(out)};

        ZSTD_compressStream2(z, &to, &in, end_frames ? ZSTD_e_end : ZSTD_e_flush);
        put_chunk(m, type, (Bytes){.data = out, .size = to.pos});
    }
    ZSTD_freeCCtx(z);
}

typedef struct Seen {
    unsigned records, samples, bad_order, decompressed;
    uint64_t payload;
} Seen;

_unused_ static int read_all(PdReader *r, Seen *ret) {
    uint64_t time = 0;
    PdRecord rec;
    PdStamp s;
    int rc;

    *ret = (Seen){};
    while ((rc = pd_reader_next(r, &rec)) > 0) {
        ret->records++;
        ret->decompressed += rec.decompressed;
        ret->payload += rec.payload;
        if (rec.type != PD_RECORD_SAMPLE)
            continue;
        ret->samples++;
        if (pd_events_stamp(pd_reader_events(r), &rec, &s) < 0 || !s.event ||
            s.event->ids[0] != s.id || s.time <= time)
            ret->bad_order++;
        time = s.time;
    }
    return rc;
}

_unused_ static int open_buffer(const Buffer *b, PdReader **ret) {
    return pd_reader_open_memory(buffer_bytes(b), NULL, ret, NULL);
}
