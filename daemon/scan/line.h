/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Lines of a file that may be endless and may hold anything: read in large pieces, held in bounded
 * memory. A line that does not fit is passed over as a whole, and a NUL does not end it.
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
/* 1: a line without its newline, ended by a NUL behind it, valid until the next call and the
 * caller's to write to. 0: the end. A last line without newline is one. */
int line_reader_next(LineReader *reader, char **ret_line, size_t *ret_size);
