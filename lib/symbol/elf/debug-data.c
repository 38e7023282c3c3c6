/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/elf/debug-data.h"

#include <errno.h>
#include <lzma.h>

#include "util/macro.h"

/* Decompressed a piece at a time, so that memory grows with what is really there. */

enum { COMPRESSED_MAX = 16 << 20, PIECE = 256 << 10, DECODER_MAX = 128 << 20 };

static int debug_data_run(lzma_stream *stream, Buffer *ret) {
    lzma_ret code = LZMA_OK;

    while (code == LZMA_OK) {
        uint8_t *to;

        if (ret->size >= DEBUG_DATA_MAX)
            return -E2BIG;
        to = buffer_reserve(ret, PIECE);
        if (!to)
            return -ENOMEM;
        stream->next_out = to;
        stream->avail_out = PIECE;
        code = lzma_code(stream, LZMA_FINISH);
        buffer_commit(ret, PIECE - stream->avail_out);
    }
    return code == LZMA_STREAM_END ? 0 : code == LZMA_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

int debug_data_read(const ElfView *view, Buffer *ret) {
    _cleanup_(buffer_done) Buffer compressed = {};
    size_t section = elf_view_find(view, ".gnu_debugdata");
    lzma_stream stream = LZMA_STREAM_INIT;
    int r;

    if (section == 0)
        return -ENODATA;
    r = elf_view_read(view, &view->sections[section], COMPRESSED_MAX, &compressed);
    if (r < 0)
        return r;
    if (lzma_stream_decoder(&stream, DECODER_MAX, 0) != LZMA_OK)
        return -ENOMEM;
    stream.next_in = compressed.data;
    stream.avail_in = compressed.size;
    r = debug_data_run(&stream, ret);
    lzma_end(&stream);
    return r;
}
