/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Where a reader gets its bytes: a regular file, a stream or memory, seen through a window of
 * bounded size. The bytes from `start` to `end` of `data` are available; source_want() gets more.
 * Files are read, not mapped, because a file may shrink while it is read.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/bytes.h"
#include "util/macro.h"

typedef struct Source {
    int fd;              /* -1: memory */
    bool stream;         /* cannot seek */
    bool ended;          /* no more bytes will come */
    uint64_t size;       /* UINT64_MAX: unknown */
    uint64_t limit;      /* the end of the section, where reading stops */
    uint64_t base;       /* offset of data[0] */
    const uint8_t *data; /* the window */
    size_t start, end;
    uint8_t *buffer; /* the memory of the window, unless the source is memory */
    size_t allocated;
} Source;

/* Takes over the descriptor on success. A regular file is one that can seek. */
int source_open_fd(Source *source, int fd);
void source_open_memory(Source *source, Bytes bytes);
void source_done(Source *source);

/* Selects a section: from offset to end (UINT64_MAX: everything). Not for streams. */
void source_seek(Source *source, uint64_t offset, uint64_t end);

static inline uint64_t source_offset(const Source *source) {
    return source->base + source->start;
}

static inline size_t source_left(const Source *source) {
    return source->end - source->start;
}

static inline const uint8_t *source_at(const Source *source) {
    return source->data + source->start;
}

/* Tries to have n bytes in the window; there are fewer only if `ended` is set. Returns 0 or a
 * negative errno. Earlier results of source_at() become invalid. */
int source_want(Source *source, size_t n);
/* Skips n bytes, or as many as there are. */
int source_skip(Source *source, uint64_t n);
/* The rest of the section in bytes, UINT64_MAX if unknown. */
uint64_t source_remaining(const Source *source);
/* Reads exactly n bytes at any offset without moving the window; -ENODATA if the file is too short.
 * Not for streams. */
int source_read_at(const Source *source, uint64_t offset, void *buffer, size_t n);
