/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "fuzz.h"
#include "perfdata/reader/reader.h"

/*
 * zstd unpacks hostile bytes, and the reader reads what zstd made of them. Input: a byte for
 * the kind (bit 0: COMPRESSED2) and the cut (the rest: where the body is split into two records),
 * then the compressed stream, which is put behind a pipe header and an attr.
 */

enum { RECORDS_MAX = 100000, BODY_MAX = 60000 };

static void put_header(Buffer *out, uint32_t type, size_t size) {
    buffer_u32(out, type, false);
    buffer_u16(out, 0, false);
    buffer_u16(out, (uint16_t)size, false);
}

static void put_preamble(Buffer *out) {
    PdAttr attr = {.type = PD_TYPE_SOFTWARE,
                   .sample_type = PD_SAMPLE_IP | PD_SAMPLE_TID | PD_SAMPLE_TIME,
                   .flags = PD_ATTR_SAMPLE_ID_ALL};

    buffer_u64(out, PD_MAGIC_2, false);
    buffer_u64(out, PD_PIPE_HEADER_SIZE, false);
    put_header(out, PD_RECORD_HEADER_ATTR, PD_RECORD_HEADER_SIZE + 64 + 8);
    pd_attr_encode(&attr, 64, out, false);
    buffer_u64(out, 1, false);
    put_header(out, PD_RECORD_HEADER_FEATURE, PD_RECORD_HEADER_SIZE + 8 + 20);
    buffer_u64(out, PD_FEATURE_COMPRESSED, false);
    buffer_u32(out, 1, false);
    buffer_u32(out, PD_COMPRESSED_ZSTD, false);
    buffer_u32(out, 1, false);
    buffer_u32(out, 1, false);
    buffer_u32(out, 65536, false);
}

static void put_chunk(Buffer *out, bool second_kind, const uint8_t *data, size_t size) {
    size_t body = second_kind ? 8 + ALIGN8(size) : size;

    put_header(out, second_kind ? PD_RECORD_COMPRESSED2 : PD_RECORD_COMPRESSED,
               PD_RECORD_HEADER_SIZE + body);
    if (second_kind)
        buffer_u64(out, size, false);
    buffer_append(out, data, size);
    if (second_kind)
        buffer_zero(out, ALIGN8(size) - size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(buffer_done) Buffer file = {};
    PdRecord record;
    PdDamage why;
    size_t cut;

    if (size < 1 || size > BODY_MAX)
        return 0;
    cut = (size_t)(data[0] >> 1) * (size - 1) / 127;
    put_preamble(&file);
    put_chunk(&file, data[0] & 1, data + 1, cut);
    put_chunk(&file, data[0] & 1, data + 1 + cut, size - 1 - cut);
    if (buffer_error(&file) < 0 ||
        pd_reader_open_memory(buffer_bytes(&file), NULL, &reader, &why) < 0)
        return 0;
    for (unsigned n = 0; n < RECORDS_MAX && pd_reader_next(reader, &record) > 0; n++)
        fuzz_touch(record.data, record.size);
    return 0;
}
