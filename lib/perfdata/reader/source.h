/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Where a reader gets its bytes: a regular file, a stream or memory, seen through a window of
 * bounded size. The bytes from `start` to `end` of `data` are there; source_want() makes there be
 * more of them. Files are read, never mapped, because a file may shrink under its reader.
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
    bool ended;          /* no byte will come any more */
    uint64_t size;       /* UINT64_MAX: not known */
    uint64_t limit;      /* offset at which reading ends, that of the section */
    uint64_t base;       /* offset of data[0] */
    const uint8_t *data; /* the window */
    size_t start, end;
    uint8_t *buffer; /* what the window is of, unless it is memory */
    size_t allocated;
} Source;

/* Takes over the descriptor on success. A regular file is one that can seek. */
int source_open_fd(Source *source, int fd);
void source_open_memory(Source *source, Bytes bytes);
void source_done(Source *source);

/* The section to read: from offset, to end (UINT64_MAX: all there is). Not for streams. */
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

/* Tries for n bytes in the window; fewer are there only when `ended` is set. Returns 0 or a
 * negative errno. What source_at() gave before is void. */
int source_want(Source *source, size_t n);
/* Passes over n bytes, or over as many as there are. */
int source_skip(Source *source, uint64_t n);
/* How many bytes are left of the section, UINT64_MAX when that is not known. */
uint64_t source_remaining(const Source *source);
/* Exactly n bytes from anywhere, without moving the window; -ENODATA when they are not there. Not
 * for streams. */
int source_read_at(const Source *source, uint64_t offset, void *buffer, size_t n);
