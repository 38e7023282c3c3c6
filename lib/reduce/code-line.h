/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The lines of a map of generated code, as they are written. */

#include "util/buffer.h"

typedef struct CodeLines {
    uint64_t limit_bytes;
    Buffer *out;
    uint64_t n;
} CodeLines;

/* Adds a line, unless it makes no sense: 0, -E2BIG, -ENOMEM. Where it finds no room, the first half
 * of the lines is dropped. */
int code_lines_add(CodeLines *lines, uint64_t address, uint64_t size, Bytes name);
