/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reduce/code-map.h"

#include <errno.h>

#include "reduce/code-line.h"
#include "reduce/jit-dump.h"
#include "reduce/reduce-limit.h"
#include "util/macro.h"

/*
 * A perf map is text, a line for each function: address and size in hex, and a name with any bytes
 * up to the end of the line. The file is read in pieces; a line that goes on in the next piece is
 * moved to the front. A line that is longer than any name is left out.
 */

enum { PIECE = 64 << 10 };

typedef struct CodeMap {
    const ReduceSource *source;
    CodeLines *lines;
    uint8_t piece[PIECE];
    size_t n;        /* bytes in the piece */
    uint64_t offset; /* of the next read */
    bool skips;      /* the rest of a line that is too long */
} CodeMap;

static bool code_map_hex(Cursor *c, uint64_t *ret) {
    uint64_t value = 0;
    unsigned n = 0;

    if (cursor_left(c) > 2 && c->at[0] == '0' && (c->at[1] | 0x20) == 'x')
        (void)cursor_take(c, 2);
    for (; cursor_left(c) > 0; n++, c->at++) {
        uint8_t digit = *c->at | 0x20;

        if (*c->at >= '0' && *c->at <= '9')
            value = value << 4 | (uint64_t)(*c->at - '0');
        else if (digit >= 'a' && digit <= 'f')
            value = value << 4 | (uint64_t)(digit - 'a' + 10);
        else
            break;
    }
    *ret = value;
    return n > 0 && n <= 16 && cursor_left(c) > 0 && *c->at == ' ';
}

static int code_map_line(CodeLines *lines, Bytes text) {
    Cursor c = cursor_of(text.data, text.size, false);
    uint64_t address, size;

    if (!code_map_hex(&c, &address))
        return 0;
    (void)cursor_take(&c, 1);
    if (!code_map_hex(&c, &size))
        return 0;
    (void)cursor_take(&c, 1);
    return code_lines_add(lines, address, size, (Bytes){.data = c.at, .size = cursor_left(&c)});
}

/* Takes the whole lines of the piece and moves the rest to its front. */
static int code_map_take(CodeMap *map) {
    const uint8_t *at = map->piece, *end = map->piece + map->n, *newline;
    int r = 0;

    while (r == 0 && (newline = memchr(at, '\n', (size_t)(end - at)))) {
        if (!map->skips)
            r = code_map_line(map->lines, (Bytes){.data = at, .size = (size_t)(newline - at)});
        map->skips = false;
        at = newline + 1;
    }
    map->n = (size_t)(end - at);
    if (map->n > REDUCE_LINE_MAX) {
        map->skips = true;
        map->n = 0;
    }
    memmove(map->piece, at, map->n);
    return r;
}

/* 1: the file has ended. */
static int code_map_read_piece(CodeMap *map) {
    int64_t got;

    if (map->offset > REDUCE_MAP_BYTES_MAX)
        return -E2BIG;
    got = map->source->read(map->source->userdata, map->offset, map->piece + map->n,
                            sizeof(map->piece) - map->n);
    if (got <= 0)
        return got < 0 ? (int)got : 1;
    map->n += (size_t)got;
    map->offset += (size_t)got;
    return 0;
}

static int code_map_read_text(const ReduceSource *source, CodeLines *lines) {
    CodeMap map = {.source = source, .lines = lines};
    int r;

    while ((r = code_map_read_piece(&map)) == 0 && (r = code_map_take(&map)) == 0)
        ;
    /* What stands behind the last newline is still being written. */
    return MIN(r, 0);
}

int code_map_read(const ReduceSource *source, uint64_t limit_bytes, Buffer *ret) {
    CodeLines lines = {.limit_bytes = limit_bytes, .out = ret};
    int r =
        jit_dump_is(source) ? jit_dump_read(source, &lines) : code_map_read_text(source, &lines);

    if (r == 0 && lines.n == 0)
        r = -ENODATA;
    if (r < 0)
        buffer_done(ret);
    return r;
}
