/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/kernel/kernel-symbols.h"

#include <errno.h>
#include <unistd.h>

#include "util/macro.h"

/*
 * Lines are "ADDRESS TYPE NAME" with "\t[MODULE]" behind those of modules, in no order. A kernel
 * that hides its addresses from the reader lists them all as zero.
 */

enum { PIECE = 256 << 10, LINE_MAX_BYTES = 4096 };

typedef struct KernelSymbolLine {
    uint64_t address;
    char type;
    Bytes name, module; /* empty: of the kernel */
} KernelSymbolLine;

static unsigned kernel_symbols_digit(uint8_t c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10U : 16;
}

static bool kernel_symbols_parse(Bytes text, KernelSymbolLine *ret) {
    const uint8_t *p = text.data, *end = text.data + text.size, *tab;
    unsigned digits = 0;

    *ret = (KernelSymbolLine){};
    for (; p < end && digits < 16 && kernel_symbols_digit(*p) < 16; p++, digits++)
        ret->address = ret->address << 4 | kernel_symbols_digit(*p);
    if (digits == 0 || end - p < 4 || p[0] != ' ' || p[2] != ' ')
        return false;
    ret->type = (char)p[1];
    p += 3;
    tab = memchr(p, '\t', (size_t)(end - p));
    ret->name = (Bytes){.data = p, .size = (size_t)((tab ? tab : end) - p)};
    if (tab && end - tab > 3 && tab[1] == '[' && end[-1] == ']')
        ret->module = (Bytes){.data = tab + 2, .size = (size_t)(end - tab) - 3};
    return ret->name.size > 0 && (!tab || ret->module.size > 0);
}

static int kernel_symbols_take(Bytes text, KernelSymbols *wanted, NameBuild *build) {
    KernelSymbolLine line;
    bool is_wanted;

    if (!kernel_symbols_parse(text, &line) || line.address == 0)
        return 0;
    if (wanted->reference && line.module.size == 0 && wanted->base == 0 &&
        bytes_equal_str(line.name, wanted->reference))
        wanted->base = line.address;
    is_wanted =
        wanted->module ? bytes_equal_str(line.module, wanted->module) : line.module.size == 0;
    if (!is_wanted || !memchr("tTwW", line.type, 4))
        return 0;
    if (wanted->lowest == 0 || line.address < wanted->lowest)
        wanted->lowest = line.address;
    return name_build_add(build, &(NameSymbol){.address = line.address,
                                               .binding = line.type == 't'   ? NAME_LOCAL
                                                          : line.type == 'T' ? NAME_GLOBAL
                                                                             : NAME_WEAK,
                                               .name = line.name});
}

/* Takes the whole lines of a piece; returns how many bytes they had. */
static int kernel_symbols_take_lines(Bytes piece, KernelSymbols *wanted, NameBuild *build,
                                     size_t *ret_used) {
    size_t used = 0;
    int r = 0;

    while (r == 0 && used < piece.size) {
        const uint8_t *line = piece.data + used, *end = memchr(line, '\n', piece.size - used);

        if (!end)
            break;
        r = kernel_symbols_take((Bytes){.data = line, .size = (size_t)(end - line)}, wanted, build);
        used += (size_t)(end - line) + 1;
    }
    *ret_used = used;
    return r;
}

int kernel_symbols_read(int fd, KernelSymbols *wanted, NameBuild *build) {
    _cleanup_free_ uint8_t *piece = malloc(PIECE);
    size_t kept = 0, used;
    ssize_t n;
    int r = 0;

    if (!piece)
        return -ENOMEM;
    while (r == 0) {
        n = read(fd, piece + kept, PIECE - kept);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        r = kernel_symbols_take_lines((Bytes){.data = piece, .size = kept + (size_t)n}, wanted,
                                      build, &used);
        kept += (size_t)n - used;
        memmove(piece, piece + used, kept);
        if (kept > LINE_MAX_BYTES)
            kept = 0; /* no line is so long: what follows is looked at as a new one */
    }
    return r == -E2BIG ? 0 : r;
}
