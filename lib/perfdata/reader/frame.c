/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/reader/frame.h"

#include <errno.h>
#include <stdlib.h>

#include "perfdata/reader/decompress.h"
#include "perfdata/reader/source.h"

/*
 * Two windows as in a reader: one over the file, and one over the output of the COMPRESSED record
 * at the start of the first. Records must not continue in the next frame here, so a record that is
 * cut off at the end of a frame is damage.
 */

enum { WINDOW_LOG = 27 };

struct PdFrames {
    Source source;
    Decompress *decompress;
    bool inside;
    uint64_t offset; /* of the COMPRESSED record */
    Bytes packed;    /* its frame, in the source's window */
};

int pd_frames_new(int fd, PdFrames **ret) {
    _cleanup_(pd_frames_freep) PdFrames *f = calloc(1, sizeof(*f));
    int r;

    if (!f)
        return -ENOMEM;
    f->source.fd = -1;
    r = decompress_new(WINDOW_LOG, &f->decompress);
    if (r == 0)
        r = source_open_fd(&f->source, fd);
    if (r < 0)
        return r;
    if (f->source.stream) {
        f->source.fd = -1;
        return -ESPIPE;
    }
    *ret = TAKE_PTR(f);
    return 0;
}

PdFrames *pd_frames_free(PdFrames *f) {
    if (!f)
        return NULL;
    source_done(&f->source);
    decompress_free(f->decompress);
    free(f);
    return NULL;
}

void pd_frames_seek(PdFrames *f, uint64_t offset, uint64_t end) {
    f->inside = false;
    decompress_reset(f->decompress);
    source_seek(&f->source, offset, end);
}

static int frame_take_head(const uint8_t *p, size_t left, PdRecord *ret, size_t *ret_size) {
    PdRecord head;

    if (left < PD_RECORD_HEADER_SIZE) {
        *ret_size = PD_RECORD_HEADER_SIZE;
        return 0;
    }
    head = pd_record_at(p, false);
    if (!pd_record_is_sane(&head) || head.size > PD_RECORD_SIZE_MAX)
        return -EBADMSG;
    *ret_size = head.size;
    if (head.size > left)
        return 0;
    head.offset = ret->offset;
    head.decompressed = ret->decompressed;
    *ret = head;
    return 1;
}

static int frame_next_on_disk(PdFrames *f, PdRecord *ret) {
    Source *s = &f->source;
    size_t wanted = PD_RECORD_HEADER_SIZE;
    int r;

    ret->offset = source_offset(s);
    for (;;) {
        r = source_want(s, wanted);
        if (r < 0)
            return r;
        if (source_left(s) < wanted)
            return source_left(s) == 0 ? 0 : -EBADMSG;
        r = frame_take_head(source_at(s), source_left(s), ret, &wanted);
        if (r != 0)
            break;
    }
    if (r > 0)
        s->start += ret->size;
    return r;
}

static int frame_next_inside(PdFrames *f, PdRecord *ret) {
    Bytes window = decompress_window(f->decompress);
    size_t wanted = 0;
    int r;

    ret->offset = f->offset;
    ret->decompressed = true;
    for (;;) {
        r = frame_take_head(window.data, window.size, ret, &wanted);
        if (r != 0)
            break;
        r = decompress_want(f->decompress, wanted);
        if (r < 0)
            return r;
        window = decompress_window(f->decompress);
        if (window.size < wanted)
            return window.size == 0 ? 0 : -EBADMSG;
    }
    if (r > 0)
        decompress_skip(f->decompress, ret->size);
    return r;
}

int pd_frames_next(PdFrames *f, PdRecord *ret) {
    for (;;) {
        int r;

        *ret = (PdRecord){};
        if (f->inside) {
            r = frame_next_inside(f, ret);
            if (r != 0)
                return r;
            f->inside = false;
            *ret = (PdRecord){};
        }
        r = frame_next_on_disk(f, ret);
        if (r <= 0 || ret->type != PD_RECORD_COMPRESSED)
            return r;
        decompress_feed(f->decompress, (Bytes){.data = ret->data + PD_RECORD_HEADER_SIZE,
                                               .size = ret->size - PD_RECORD_HEADER_SIZE});
        f->inside = true;
        f->offset = ret->offset;
        f->packed = (Bytes){.data = ret->data, .size = ret->size};
    }
}

Bytes pd_frames_packed(const PdFrames *f) {
    return f->inside ? f->packed : (Bytes){};
}

int pd_frames_is_spent(PdFrames *f) {
    int r = f->inside ? decompress_want(f->decompress, 1) : 0;

    return r < 0 ? r : !f->inside || decompress_window(f->decompress).size == 0;
}
