/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A borrowed view of one record: its header in host byte order, and its bytes. A view from a reader
 * is valid until the next call on that reader.
 */

#include <stdbool.h>
#include <stdint.h>

#include "perfdata/event/format.h"
#include "util/bytes.h"

typedef struct PdRecord {
    uint32_t type;
    uint16_t misc;
    bool swap;           /* the bytes are in the other byte order */
    bool decompressed;   /* from a COMPRESSED record */
    uint32_t file;       /* 0: the file, the stream or `data`; N + 1: `data.N` */
    uint32_t size;       /* of data, header included */
    const uint8_t *data; /* begins with the header; may be unaligned */
    uint64_t offset;     /* in its file; for a record from a COMPRESSED record, the offset of
                          * that one */
    uint64_t payload;    /* bytes of payload after it (AUXTRACE, TRACING_DATA): see the reader */
} PdRecord;

enum { PD_RECORD_BIG_MAX = 64 << 20 }; /* simpleperf's sizes have 32 bits; this is our bound */

/* The record at p, whose header must be readable; file and offset are not set. */
static inline PdRecord pd_record_at(const uint8_t *p, bool swap) {
    PdRecord r = {.type = load_u32(p, swap),
                  .misc = load_u16(p + 4, swap),
                  .swap = swap,
                  .size = load_u16(p + 6, swap),
                  .data = p};

    if (r.type >= PD_RECORD_SIMPLEPERF)
        r.size |= (uint32_t)r.misc << 16;
    return r;
}

/* Whether type and size are possible at all. */
static inline bool pd_record_is_sane(const PdRecord *r) {
    return r->type - 1 < UINT16_MAX && r->size >= PD_RECORD_HEADER_SIZE &&
           r->size <= PD_RECORD_BIG_MAX;
}

/* Takes the next record off *records, which are in the byte order of this host. False where none is
 * whole and sane: at the end, or at bytes that are no record, which stay in *records. */
static inline bool pd_records_next(Bytes *records, PdRecord *ret) {
    if (records->size < PD_RECORD_HEADER_SIZE)
        return false;
    *ret = pd_record_at(records->data, false);
    if (!pd_record_is_sane(ret) || ret->size > records->size)
        return false;
    *records = (Bytes){.data = records->data + ret->size, .size = records->size - ret->size};
    return true;
}

static inline Cursor pd_record_cursor(const PdRecord *r) {
    return cursor_of(r->data + PD_RECORD_HEADER_SIZE, r->size - PD_RECORD_HEADER_SIZE, r->swap);
}
