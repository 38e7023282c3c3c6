/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer/compress.h"

#include <errno.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "perfdata/event/format.h"
#include "util/macro.h"

/*
 * Takes whole records and produces frames. How much raw data fits into a record of 64 KiB is only
 * known after compressing, so the compressor guesses: it halves its chunk when a frame was too
 * large and doubles it when one was small. A record or chunk that does not shrink is passed on
 * uncompressed; readers accept a mix of both.
 */

/*
 * Level 3 searches for matches with tables of 512 KiB. In a recorder that writes a few times a
 * second, they are no longer in a cache, and fetching them takes longer than compressing: a chunk
 * of samples then takes 1.2 to 2.9 times as long as with tables of 96 KiB, which find as many
 * matches, because records resemble those right before them. Levels 1 and 2 have such tables
 * anyway; from level 4 on the tables belong to another search, which the user has chosen.
 */
enum { TABLES_LEVEL_MAX = 3, HASH_LOG = 14, CHAIN_LOG = 13 };

struct PdCompressor {
    ZSTD_CCtx *context;
    bool swap;
    size_t chunk; /* raw bytes of the next attempt */
};

static bool compress_set(PdCompressor *c, ZSTD_cParameter parameter, int value) {
    return !ZSTD_isError(ZSTD_CCtx_setParameter(c->context, parameter, value));
}

int pd_compressor_new(int level, bool swap, PdCompressor **ret) {
    _cleanup_(pd_compressor_freep) PdCompressor *c = calloc(1, sizeof(*c));

    if (!c)
        return -ENOMEM;
    c->context = ZSTD_createCCtx();
    if (!c->context)
        return -ENOMEM;
    c->swap = swap;
    c->chunk = PD_FRAME_RAW_MAX;
    if (!compress_set(c, ZSTD_c_compressionLevel, level) ||
        !compress_set(c, ZSTD_c_checksumFlag, 1))
        return -EINVAL;
    if (level <= TABLES_LEVEL_MAX && (!compress_set(c, ZSTD_c_hashLog, HASH_LOG) ||
                                      !compress_set(c, ZSTD_c_chainLog, CHAIN_LOG)))
        return -EINVAL;
    *ret = TAKE_PTR(c);
    return 0;
}

PdCompressor *pd_compressor_free(PdCompressor *c) {
    if (!c)
        return NULL;
    ZSTD_freeCCtx(c->context);
    free(c);
    return NULL;
}

/* The size of whole records up to max bytes, but at least one record. */
static size_t compress_whole_records(const PdCompressor *c, Bytes records, size_t max,
                                     bool *ret_single) {
    size_t n = 0;
    unsigned count = 0;

    if (records.size <= max && load_u16(records.data + 6, c->swap) < records.size) {
        *ret_single = false;
        return records.size;
    }
    while (n < records.size) {
        size_t size = load_u16(records.data + n + 6, c->swap);

        assert(size >= PD_RECORD_HEADER_SIZE && size <= records.size - n);
        if (count > 0 && size > max - n)
            break;
        n += size;
        count++;
        if (n >= max)
            break;
    }
    *ret_single = count <= 1;
    return n;
}

/* 1: appended, 0: the frame is larger than a record, negative errno. */
static int compress_put_frame(PdCompressor *c, Bytes raw, Buffer *out) {
    uint8_t *p = buffer_reserve(out, PD_RECORD_HEADER_SIZE + PD_FRAME_STORED_MAX);
    size_t n;

    if (!p)
        return buffer_error(out);
    n = ZSTD_compress2(c->context, p + PD_RECORD_HEADER_SIZE, PD_FRAME_STORED_MAX, raw.data,
                       raw.size);
    if (ZSTD_getErrorCode(n) == ZSTD_error_dstSize_tooSmall)
        return 0;
    if (ZSTD_isError(n))
        return ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation ? -ENOMEM : -EIO;
    if (n < PD_FRAME_STORED_MAX / 2)
        c->chunk = MIN(c->chunk * 2, (size_t)PD_FRAME_RAW_MAX);
    if (n + PD_RECORD_HEADER_SIZE >= raw.size) {
        buffer_append(out, raw.data, raw.size);
        return buffer_error(out) < 0 ? buffer_error(out) : 1;
    }
    store_u32(p, PD_RECORD_COMPRESSED, c->swap);
    store_u16(p + 4, 0, c->swap);
    store_u16(p + 6, (uint16_t)(PD_RECORD_HEADER_SIZE + n), c->swap);
    buffer_commit(out, PD_RECORD_HEADER_SIZE + n);
    return 1;
}

int pd_compressor_take(PdCompressor *c, Bytes records, bool all, Buffer *out, size_t *ret_taken) {
    size_t taken = 0;

    while (records.size - taken >= (all ? 1 : c->chunk)) {
        Bytes left = {.data = records.data + taken, .size = records.size - taken};
        bool single;
        size_t n = compress_whole_records(c, left, c->chunk, &single);
        int r = compress_put_frame(c, (Bytes){.data = left.data, .size = n}, out);

        if (r < 0)
            return r;
        if (r == 0 && !single) {
            c->chunk = n / 2;
            continue;
        }
        if (r == 0)
            buffer_append(out, left.data, n);
        if (buffer_error(out) < 0)
            return buffer_error(out);
        taken += n;
    }
    *ret_taken = taken;
    return 0;
}
