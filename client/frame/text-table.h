/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Aligned columns on a terminal. Cells are filled from left to right, row by row; all text in them
 * is escaped. If memory runs out, nothing is printed and table_print() returns -ENOMEM.
 */

#include "client/frame/color.h"
#include "client/frame/command.h"
#include "util/bytes.h"

typedef struct Table Table;

typedef struct Column {
    const char *name; /* NULL ends the list */
    bool right;       /* right-aligned, for numbers */
    bool shrinks;     /* may be cut on a narrow terminal */
    bool is_main;     /* when it is cut, it keeps twice the width of others */
    unsigned drops;   /* omitted if cutting is not enough, 1 first; 0: never */
} Column;

int table_new(const Context *c, const Column *columns, Table **ret);
Table *table_free(Table *table);
DEFINE_CLEANUP(Table *, table_free);

/* The next cell; after the last column a new row begins. */
void table_bytes(Table *table, Bytes text);
void table_printf(Table *table, const char *format, ...) _printf_(2, 3);
void table_count(Table *table, uint64_t n);
/* Text that is escaped already. */
void table_shown(Table *table, const char *text);
/* The same of what figure_…() appended, which is cleared. */
void table_buffer(Table *table, Buffer *text);
/* Colours the last cell. */
void table_color(Table *table, Color color);

/* Appends all rows, with a heading unless --no-legend is set. */
int table_print(Table *table, Buffer *out);
