/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/text-table.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/frame/width.h"
#include "util/array.h"
#include "util/text.h"

/*
 * All cells are kept until the table is printed, because the widest cell determines the width of
 * its column. If the terminal is too narrow, the least important columns are omitted first, then
 * columns that may shrink are cut, the widest first. Text is printed as UTF-8 in every locale.
 */

enum { SEPARATOR_WIDTH = 2, SHRUNK_MIN = 16 };

typedef struct Cell {
    char *text;
    size_t width;
    Color color;
} Cell;

struct Table {
    const Column *columns; /* borrowed */
    size_t n_columns, terminal_width;
    size_t *widths; /* of each column; 0: omitted */
    Cell *cells;    /* row by row */
    size_t n;
    bool colors, no_legend;
    int error;
};

int table_new(const Context *c, const Column *columns, Table **ret) {
    _cleanup_(table_freep) Table *table = calloc(1, sizeof(*table));

    if (!table)
        return -ENOMEM;
    table->columns = columns;
    table->terminal_width = context_width(c);
    table->colors = context_colors(c);
    table->no_legend = c->no_legend;
    while (columns[table->n_columns].name)
        table->n_columns++;
    table->widths = calloc(table->n_columns, sizeof(*table->widths));
    if (!table->widths)
        return -ENOMEM;
    *ret = TAKE_PTR(table);
    return 0;
}

Table *table_free(Table *table) {
    if (!table)
        return NULL;
    for (size_t i = 0; i < table->n; i++)
        free(table->cells[i].text);
    free(table->cells);
    free(table->widths);
    free(table);
    return NULL;
}

/* Takes ownership of the text; NULL: there was no memory for it. */
static void text_table_add(Table *table, char *text) {
    Cell *cell = text ? array_grow(&table->cells, &table->n) : NULL;

    if (!cell) {
        free(text);
        table->error = -ENOMEM;
        return;
    }
    *cell = (Cell){.text = text, .width = width_of(text, strlen(text))};
}

void table_bytes(Table *table, Bytes text) {
    Buffer cell = {};

    text_escape(&cell, text);
    text_putc(&cell, '\0');
    if (buffer_error(&cell))
        buffer_done(&cell);
    text_table_add(table, (char *)cell.data);
}

void table_shown(Table *table, const char *text) {
    text_table_add(table, strdup(text));
}

void table_buffer(Table *table, Buffer *text) {
    text_putc(text, '\0');
    table_shown(table, buffer_error(text) ? "?" : (const char *)text->data);
    buffer_clear(text);
}

void table_color(Table *table, Color color) {
    if (table->n > 0)
        table->cells[table->n - 1].color = color;
}

void table_printf(Table *table, const char *format, ...) {
    _cleanup_free_ char *text = NULL;
    va_list ap;
    int n;

    va_start(ap, format);
    n = vasprintf(&text, format, ap);
    va_end(ap);
    if (n < 0) {
        text = NULL;
        text_table_add(table, NULL);
        return;
    }
    table_bytes(table, (Bytes){.data = (const uint8_t *)text, .size = (size_t)n});
}

void table_count(Table *table, uint64_t n) {
    table_printf(table, "%" PRIu64, n);
}

static void text_table_measure(Table *table) {
    for (size_t i = 0; i < table->n_columns; i++)
        table->widths[i] = width_of(table->columns[i].name, strlen(table->columns[i].name));
    for (size_t i = 0; i < table->n; i++) {
        size_t *width = &table->widths[i % table->n_columns];

        *width = MAX(*width, table->cells[i].width);
    }
}

/* The width of the remaining columns; `shrunk`: with each cut to its minimum. */
static size_t text_table_width(const Table *table, bool shrunk) {
    size_t sum = 0;

    for (size_t i = 0; i < table->n_columns; i++) {
        size_t width = table->widths[i];

        if (width == 0)
            continue;
        if (shrunk && table->columns[i].shrinks)
            width = MIN(width, (size_t)SHRUNK_MIN);
        sum += width + SEPARATOR_WIDTH;
    }
    return sum - MIN(sum, (size_t)SEPARATOR_WIDTH);
}

static void text_table_drop_columns(Table *table) {
    unsigned last = 0;

    for (size_t i = 0; i < table->n_columns; i++)
        last = MAX(last, table->columns[i].drops);
    for (unsigned drop = 1; drop <= last && text_table_width(table, true) > table->terminal_width;
         drop++)
        for (size_t i = 0; i < table->n_columns; i++)
            if (table->columns[i].drops == drop)
                table->widths[i] = 0;
}

/* The width by which columns are compared that may be cut. */
static size_t text_table_claim(const Table *table, size_t column) {
    return table->widths[column] * (table->columns[column].is_main ? 1 : 2);
}

/* If no more columns can be omitted, one is cut down to the width of its heading. */
static void text_table_shrink_columns(Table *table) {
    size_t width = text_table_width(table, false);

    for (; width > table->terminal_width; width--) {
        size_t widest = table->n_columns;

        for (size_t i = 0; i < table->n_columns; i++)
            if (table->columns[i].shrinks && table->widths[i] > strlen(table->columns[i].name) &&
                (widest == table->n_columns ||
                 text_table_claim(table, i) >= text_table_claim(table, widest)))
                widest = i;
        if (widest == table->n_columns)
            return;
        table->widths[widest]--;
    }
}

static void text_table_put_spaces(Buffer *out, size_t n) {
    for (size_t i = 0; i < n; i++)
        text_putc(out, ' ');
}

static void text_table_put_cell(const Table *table, size_t column, const Cell *cell, Buffer *out) {
    size_t n = width_fit(cell->text, strlen(cell->text), table->widths[column]);
    size_t space = table->widths[column] - width_of(cell->text, n);
    bool colors = table->colors && cell->color != COLOR_NONE;

    if (table->columns[column].right)
        text_table_put_spaces(out, space);
    if (colors)
        text_puts(out, color_sequence(cell->color));
    buffer_append(out, cell->text, n);
    if (colors)
        text_puts(out, color_sequence(COLOR_NONE));
    if (!table->columns[column].right)
        text_table_put_spaces(out, space);
}

/* Prints a row without trailing blanks. */
static void text_table_put_row(const Table *table, const Cell *cells, Buffer *out) {
    size_t start = out->size;
    bool first = true;

    for (size_t i = 0; i < table->n_columns; i++) {
        if (table->widths[i] == 0)
            continue;
        if (!first)
            text_table_put_spaces(out, SEPARATOR_WIDTH);
        first = false;
        text_table_put_cell(table, i, &cells[i], out);
    }
    while (!buffer_error(out) && out->size > start && out->data[out->size - 1] == ' ')
        out->size--;
    text_putc(out, '\n');
}

static int text_table_put_heading(const Table *table, Buffer *out) {
    _cleanup_free_ Cell *cells = calloc(table->n_columns, sizeof(*cells));

    if (!cells)
        return -ENOMEM;
    for (size_t i = 0; i < table->n_columns; i++)
        cells[i].text = (char *)table->columns[i].name;
    text_table_put_row(table, cells, out);
    return 0;
}

int table_print(Table *table, Buffer *out) {
    int r = table->error;

    if (r < 0 || table->n == 0)
        return r;
    assert(table->n % table->n_columns == 0);
    text_table_measure(table);
    if (table->terminal_width > 0) {
        text_table_drop_columns(table);
        text_table_shrink_columns(table);
    }
    if (!table->no_legend)
        r = text_table_put_heading(table, out);
    for (size_t i = 0; r == 0 && i < table->n; i += table->n_columns)
        text_table_put_row(table, &table->cells[i], out);
    return r < 0 ? r : buffer_error(out);
}
