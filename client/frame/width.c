/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/width.h"

#include "util/text.h"

/*
 * Computes columns from code points with two short tables: characters of two columns (East Asian
 * ones and emoji) and of none (combining marks). wcwidth() cannot be used: it depends on the locale
 * of the process, and a server often has none. A code point that is missing from the tables shifts
 * one line of a table and has no other effect.
 */

typedef struct Range {
    uint32_t first, last;
} Range;

/* clang-format off */
static const Range wide[] = {
    {0x1100, 0x115f}, {0x231a, 0x231b}, {0x23e9, 0x23ec}, {0x2e80, 0x303e}, {0x3041, 0x4dbf},
    {0x4e00, 0xa4cf}, {0xa960, 0xa97f}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f},
    {0xff01, 0xff60}, {0xffe0, 0xffe6}, {0x16fe0, 0x1b2ff}, {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
    {0x1f900, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
};

static const Range combining[] = {
    {0x300, 0x36f}, {0x483, 0x489}, {0x591, 0x5bd}, {0x610, 0x61a}, {0x64b, 0x65f},
    {0x900, 0x902}, {0x941, 0x948}, {0xe34, 0xe3a}, {0xe47, 0xe4e}, {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0x302a, 0x302d}, {0x3099, 0x309a}, {0xfe00, 0xfe0f},
    {0xfe20, 0xfe2f}, {0x1f3fb, 0x1f3ff},
};
/* clang-format on */

static bool width_is_in(const Range *ranges, size_t n, uint32_t c) {
    for (size_t i = 0; i < n && c >= ranges[i].first; i++)
        if (c <= ranges[i].last)
            return true;
    return false;
}

/* The columns of the character at `text`, and its bytes. A byte that is not valid UTF-8 takes
 * one. */
static size_t width_of_next(const char *text, size_t n, size_t *ret_bytes) {
    uint32_t c = 0;
    size_t bytes = text_code_point((const uint8_t *)text, n, &c);

    *ret_bytes = bytes > 0 ? bytes : 1;
    if (c < combining[0].first)
        return 1;
    if (width_is_in(combining, ARRAY_SIZE(combining), c))
        return 0;
    return width_is_in(wide, ARRAY_SIZE(wide), c) ? 2 : 1;
}

size_t width_fit(const char *text, size_t n, size_t columns) {
    size_t i = 0, bytes;

    for (; i < n; i += bytes) {
        size_t width = width_of_next(text + i, n - i, &bytes);

        if (width > columns)
            break;
        columns -= width;
    }
    return i;
}

size_t width_of(const char *text, size_t n) {
    size_t columns = 0, bytes;

    for (size_t i = 0; i < n; i += bytes)
        columns += width_of_next(text + i, n - i, &bytes);
    return columns;
}
