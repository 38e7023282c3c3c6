/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Source lines and inlined functions, by libdw. The files may be of anybody, and libdw was not made
 * for hostile ones, so it runs in a child that has no rights and a limit of memory and time, and
 * what it says is checked.
 */

#include "symbol/line/line-limit.h"
#include "util/buffer.h"

/* A place in the source; the texts lie in the reply. */
typedef struct SourceLine {
    Bytes function; /* as the linker knows it, if it does; empty: not known */
    Bytes file;     /* empty: not known */
    uint32_t line;  /* 0: not known */
} SourceLine;

/* Asks for sorted addresses of an ELF file with debug information. `alternate` is the descriptor of
 * the file that it shares information with, or -1. Appends the reply to the empty buffer; if the
 * child fell, that has the answers up to there. A negative errno: there is no child. */
int line_find(int fd, int alternate, const uint64_t *addresses, size_t n, Buffer *ret);
/* The next address of a reply: its lines, the innermost first; 0: none or the end. */
size_t line_next(Cursor *reply, SourceLine ret[LINES_MAX]);
