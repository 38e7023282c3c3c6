/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer/stream.h"

#include <errno.h>

#include "util/file.h"
#include "util/macro.h"

/*
 * The output of a writer. Small writes are gathered in a buffer; its size is bounded by one call's
 * data, because it is only extended after the system took its old content. Large data that is not
 * changed is written to a file without a copy.
 */

enum { OUT_ENOUGH = 256 * 1024, PLAIN_LARGE = 32 * 1024, FRAME_LARGE = PD_FRAME_RAW_MAX / 2 };

void pd_stream_done(PdStream *s) {
    buffer_done(&s->out);
    buffer_done(&s->raw);
}

static int stream_write_out(PdStream *s) {
    int r;

    if (s->broken < 0)
        return s->broken;
    if (s->positioned)
        r = file_write_all_at(s->fd, s->out.data, s->out.size, s->position);
    else
        r = s->broken = file_write_all(s->fd, s->out.data, s->out.size);
    if (r < 0)
        return r;
    s->position += s->out.size;
    buffer_clear(&s->out);
    return 0;
}

int pd_stream_make_room(PdStream *s) {
    return s->out.size < OUT_ENOUGH ? 0 : stream_write_out(s);
}

/* Appends everything or nothing: after a lack of memory the call may be repeated. */
static int stream_append(Buffer *b, const void *data, size_t n) {
    uint8_t *p = n > 0 ? buffer_reserve(b, n) : NULL;

    if (n > 0 && !p) {
        b->error = 0;
        return -ENOMEM;
    }
    if (n > 0)
        memcpy(p, data, n);
    buffer_commit(b, n);
    return 0;
}

static int stream_compress(PdStream *s, Bytes records, bool all, size_t *ret_taken) {
    size_t before = s->out.size;
    int r = pd_compressor_take(s->compressor, records, all, &s->out, ret_taken);

    if (r < 0) {
        s->out.error = 0;
        s->out.size = before;
    }
    return r;
}

static int stream_compress_raw(PdStream *s, bool all) {
    size_t taken;
    int r = stream_compress(s, buffer_bytes(&s->raw), all, &taken);

    if (r < 0)
        return r;
    s->raw.size -= taken;
    if (s->raw.size > 0)
        memmove(s->raw.data, s->raw.data + taken, s->raw.size);
    return 0;
}

/* Adds records to the frame that is being filled. */
static int stream_gather(PdStream *s, const void *records, size_t n) {
    int r = stream_append(&s->raw, records, n);

    if (r == 0 && s->raw.size >= PD_FRAME_RAW_MAX) {
        r = stream_compress_raw(s, false);
        s->raw.size -= r < 0 ? n : 0;
    }
    return r;
}

int pd_stream_records(PdStream *s, const void *records, size_t n) {
    size_t taken;
    int r;

    assert(s->compressor);
    /* Data that is large enough for a frame of its own is compressed without a copy. */
    r = s->raw.size == 0 && n >= FRAME_LARGE
            ? stream_compress(s, (Bytes){.data = records, .size = n}, true, &taken)
            : stream_gather(s, records, n);
    if (r == 0)
        s->raw_bytes += n;
    return r;
}

int pd_stream_end_frame(PdStream *s) {
    return s->raw.size > 0 ? stream_compress_raw(s, true) : 0;
}

/* The next write overwrites what a failed write has left. */
static int stream_write_through(PdStream *s, const void *bytes, size_t n) {
    int r = stream_write_out(s);

    if (r == 0)
        r = file_write_all_at(s->fd, bytes, n, s->position);
    if (r == 0)
        s->position += n;
    return r;
}

int pd_stream_plain(PdStream *s, const void *bytes, size_t n) {
    int r = pd_stream_end_frame(s);

    if (r < 0)
        return r;
    r = s->positioned && n >= PLAIN_LARGE ? stream_write_through(s, bytes, n)
                                          : stream_append(&s->out, bytes, n);
    if (r < 0)
        return r;
    s->raw_bytes += n;
    return 0;
}

int pd_stream_flush(PdStream *s) {
    int r = pd_stream_end_frame(s);

    return r < 0 ? r : stream_write_out(s);
}

uint64_t pd_stream_end(const PdStream *s) {
    return s->position + s->out.size;
}
