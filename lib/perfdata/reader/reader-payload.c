/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/reader/reader-private.h"

#include "util/macro.h"

/*
 * The bytes that follow some records without being included in their size: trace data, and the
 * names of tracepoints. Each is bounded by the rest of the file.
 */

enum {
    TRACING_DATA_SIZE = 12, /* what perf writes before the payload */
    AUXTRACE_SIZE = 48,
};

static uint64_t reader_payload_announced(const PdRecord *record) {
    const uint8_t *body = record->data + PD_RECORD_HEADER_SIZE;

    if (record->type == PD_RECORD_AUXTRACE && record->size >= AUXTRACE_SIZE)
        return load_u64(body, record->swap);
    if (record->type == PD_RECORD_TRACING_DATA && record->size >= TRACING_DATA_SIZE)
        return ALIGN8((uint64_t)load_u32(body, record->swap));
    return 0;
}

bool pd_record_payload_is_whole(const PdRecord *record) {
    return record->payload == reader_payload_announced(record);
}

void reader_payload_begin(PdReader *r, PdRecord *rec) {
    uint64_t size = reader_payload_announced(rec);

    if (rec->decompressed) {
        if (size > 0)
            reader_damage(r, false, rec->offset, "the payload of a compressed record is missing");
        return;
    }
    rec->payload = r->payload_left = size;
    if (size > source_remaining(r->source)) {
        rec->payload = r->payload_left = source_remaining(r->source);
        reader_cut_off(r, true, rec->offset, "the payload of %llu bytes behind a record is cut off",
                       (unsigned long long)size);
    }
}

int reader_payload_skip(PdReader *r) {
    uint64_t left = r->payload_left;

    r->payload_left = 0;
    r->payload_kept = (Bytes){};
    return left > 0 ? source_skip(r->source, left) : 0;
}

ssize_t pd_reader_payload(PdReader *reader, void *buffer, size_t n) {
    Source *s = reader->source;
    int r;

    if (reader->payload_kept.size > 0) {
        n = MIN(n, reader->payload_kept.size);
        memcpy(buffer, reader->payload_kept.data, n);
        reader->payload_kept.data += n;
        reader->payload_kept.size -= n;
        return (ssize_t)n;
    }
    n = (size_t)MIN((uint64_t)n, reader->payload_left);
    if (n == 0)
        return 0;
    if (source_left(s) == 0) {
        r = source_want(s, 1);
        if (r < 0)
            return r;
    }
    n = MIN(n, source_left(s));
    if (n == 0) {
        reader_cut_off(reader, true, source_offset(s), "the payload behind a record is cut off");
        reader->payload_left = 0;
        return 0;
    }
    memcpy(buffer, source_at(s), n);
    s->start += n;
    reader->payload_left -= n;
    return (ssize_t)n;
}
