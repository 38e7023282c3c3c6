/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Frames and mappings as formats with tables of both have them. */

#include <stddef.h>

#include "profile/frame.h"
#include "util/macro.h"

enum { EXPORT_PAGE = 4096 };

/* The addresses of a mapping that frames are at. */
typedef struct ExportSpan {
    bool used;
    uint64_t lowest, highest;
} ExportSpan;

/* Within the call, not behind it. */
static inline uint64_t export_address(const Frame *frame) {
    return frame->address - (frame->is_return && frame->address > 0);
}

static inline void export_span_add(ExportSpan *span, uint64_t address) {
    span->lowest = span->used ? MIN(span->lowest, address) : address;
    span->highest = span->used ? MAX(span->highest, address) : address;
    span->used = true;
}

static inline uint64_t export_span_start(const ExportSpan *span) {
    return span->lowest / EXPORT_PAGE * EXPORT_PAGE;
}

static inline uint64_t export_span_limit(const ExportSpan *span) {
    uint64_t last = span->highest / EXPORT_PAGE * EXPORT_PAGE;

    return last > UINT64_MAX - EXPORT_PAGE ? UINT64_MAX : last + EXPORT_PAGE;
}

/* Addresses of such frames are offsets, so the file seems to be mapped at its offsets. */
static inline bool export_is_file(const FrameMapping *mapping) {
    return mapping->kind == FRAME_USER || mapping->kind == FRAME_VDSO;
}

static inline Bytes export_mapping_name(const FrameMapping *mapping) {
    if (mapping->kind == FRAME_OTHER)
        return (Bytes){.data = (const uint8_t *)"[other]", .size = 7};
    return mapping->path.size > 0 ? mapping->path : mapping->dso;
}
