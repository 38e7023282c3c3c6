/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reads lines from a file that may be endless and hostile: in large pieces, with bounded memory. A
 * line that does not fit is skipped completely, and a NUL does not end a line.
 */

#include <stdbool.h>
#include <stddef.h>

#include "util/macro.h"

enum { LINE_READER_SIZE = 64 << 10 };

typedef struct LineReader {
    int fd; /* borrowed */
    size_t begin, end;
    bool at_end, skips;
    char data[LINE_READER_SIZE + 1];
} LineReader;

void line_reader_init(LineReader *reader, int fd);
/* 1: a line without its newline, terminated by a NUL, valid until the next call and writable. 0:
 * the end. A last line without newline counts as a line. */
int line_reader_next(LineReader *reader, char **ret_line, size_t *ret_size);
