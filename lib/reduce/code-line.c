/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reduce/code-line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "reduce/reduce-limit.h"

/* A name may have any bytes that are no control characters: it comes from a program, and its
 * readers escape it on its way out. */

static bool code_lines_is_name(Bytes name) {
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] < 0x20 || name.data[i] == 0x7f)
            return false;
    return name.size > 0 && name.size <= REDUCE_LINE_MAX;
}

/* Drops the first half: where lines name the same code, the last one counts. */
static void code_lines_drop_half(CodeLines *lines) {
    Buffer *out = lines->out;
    const uint8_t *middle = out->data + out->size / 2, *end = out->data + out->size;
    const uint8_t *rest = (const uint8_t *)memchr(middle, '\n', (size_t)(end - middle)) + 1;

    out->size = (size_t)(end - rest);
    memmove(out->data, rest, out->size);
    lines->n = 0;
    for (size_t i = 0; i < out->size; i++)
        lines->n += out->data[i] == '\n';
}

int code_lines_add(CodeLines *lines, uint64_t address, uint64_t size, Bytes name) {
    char numbers[40];
    int n;

    if (size == 0 || address == 0 || address > UINT64_MAX - size || !code_lines_is_name(name))
        return 0;
    n = snprintf(numbers, sizeof(numbers), "%" PRIx64 " %" PRIx64 " ", address, size);
    if ((size_t)n + name.size + 1 > lines->limit_bytes)
        return -E2BIG;
    while (lines->n == REDUCE_LINES_MAX ||
           lines->out->size + (size_t)n + name.size + 1 > lines->limit_bytes)
        code_lines_drop_half(lines);
    lines->n++;
    buffer_append(lines->out, numbers, (size_t)n);
    buffer_append(lines->out, name.data, name.size);
    buffer_append(lines->out, "\n", 1);
    return buffer_error(lines->out);
}
