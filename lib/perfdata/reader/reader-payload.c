/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/reader/reader-private.h"

#include "perfdata/record/record.h"
#include "util/macro.h"

/* Reads the payload behind a record, which is bounded by the rest of the file. */

void reader_payload_begin(PdReader *r, PdRecord *rec) {
    uint64_t size = pd_record_payload_size(rec);

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
