/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/text/frame-text.h"

#include "util/text.h"

/* An offset helps those who have the file; code without a file has only its address. */

const char *frame_text_fixed(FrameKind kind) {
    switch (kind) {
    case FRAME_UNKNOWN:
        return "[unknown]";
    case FRAME_GUEST:
        return "[guest]";
    case FRAME_HYPERVISOR:
        return "[hypervisor]";
    case FRAME_OTHER:
        return "[other]";
    default:
        return NULL;
    }
}

static Bytes frame_text_last_part(Bytes path) {
    const uint8_t *slash = path.size > 0 ? memrchr(path.data, '/', path.size) : NULL;
    size_t skipped = slash ? (size_t)(slash - path.data) + 1 : 0;

    return skipped < path.size ? (Bytes){.data = path.data + skipped, .size = path.size - skipped}
                               : path;
}

void frame_text_unnamed(const FrameMapping *mapping, uint64_t address, FrameNaming naming,
                        Buffer *ret) {
    Bytes name = frame_text_last_part(mapping->path);

    if (mapping->kind == FRAME_USER || mapping->kind == FRAME_VDSO) {
        buffer_append(ret, name.data, name.size);
        text_puts(ret, "+");
    }
    text_hex(ret, address);
    if (naming == FRAME_REPLACED)
        text_puts(ret, " [replaced]");
}
