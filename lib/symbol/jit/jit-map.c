/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/jit/jit-map.h"

#include <errno.h>
#include <unistd.h>

#include "reduce/code-map.h"
#include "util/file.h"
#include "util/macro.h"

/* lib/reduce reads both kinds of file and makes clean lines of them; these become symbols, in the
 * order in which the code was generated. */

enum { LINES_MAX_BYTES = 128 << 20 };

static uint64_t jit_map_hex(Cursor *c) {
    uint64_t value = 0;

    for (; cursor_left(c) > 0 && *c->at != ' '; c->at++)
        value = value << 4 | (uint64_t)(*c->at <= '9' ? *c->at - '0' : *c->at - 'a' + 10);
    (void)cursor_take(c, 1);
    return value;
}

int jit_map_add(Bytes lines, NameBuild *build) {
    Cursor c = cursor_of(lines.data, lines.size, false);
    int r = 0;

    while (r == 0 && cursor_left(&c) > 0) {
        NameSymbol symbol = {.address = jit_map_hex(&c), .size = jit_map_hex(&c)};
        const uint8_t *end = cursor_left(&c) > 0 ? memchr(c.at, '\n', cursor_left(&c)) : NULL;

        if (!end)
            break;
        symbol.name = (Bytes){.data = c.at, .size = (size_t)(end - c.at)};
        c.at = end + 1;
        r = name_build_add(build, &symbol);
    }
    return r == -E2BIG ? 0 : r;
}

int jit_map_read_lines(int fd, Buffer *ret) {
    ReduceSource source = {.read = file_read_at, .userdata = &fd};

    return code_map_read(&source, LINES_MAX_BYTES, ret);
}

int jit_map_read(int fd, NameBuild *build) {
    _cleanup_(buffer_done) Buffer lines = {};
    int r = jit_map_read_lines(fd, &lines);

    return r < 0 ? r : jit_map_add(buffer_bytes(&lines), build);
}
