/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/table.h"

#include <errno.h>
#include <inttypes.h>
#include <libsmartcols.h>
#include <stdarg.h>
#include <string.h>

#include "util/text.h"

/*
 * A thin coat over libsmartcols: it counts the cells, escapes them by our one escape, and tells
 * the library the width of the terminal, which it cannot see once a pager stands in between. The
 * library cuts a column that may shrink down to its heading; before it comes to that, columns go
 * that say least.
 */

enum { SEPARATOR_WIDTH = 2, SHRUNK_MIN = 16 };

struct Table {
    const Column *columns; /* borrowed */
    unsigned *widths, terminal_width;
    struct libscols_table *scols;
    struct libscols_line *line;
    unsigned n_columns, at;
    int error;
};

int table_new(const Context *c, const Column *columns, Table **ret) {
    _cleanup_(table_freep) Table *table = calloc(1, sizeof(*table));
    unsigned width = context_width(c);

    if (!table)
        return -ENOMEM;
    table->columns = columns;
    table->terminal_width = width;
    table->scols = scols_new_table();
    if (!table->scols)
        return -ENOMEM;
    (void)scols_table_enable_noencoding(table->scols, 1);
    (void)scols_table_enable_noheadings(table->scols, c->no_legend);
    (void)scols_table_enable_colors(table->scols, context_colors(c));
    (void)scols_table_set_termforce(table->scols,
                                    width ? SCOLS_TERMFORCE_ALWAYS : SCOLS_TERMFORCE_NEVER);
    if (width)
        (void)scols_table_set_termwidth(table->scols, width);
    (void)scols_table_set_column_separator(table->scols, "  ");
    for (; columns[table->n_columns].name; table->n_columns++) {
        const Column *column = &columns[table->n_columns];

        if (!scols_table_new_column(table->scols, column->name, 0,
                                    (column->right ? SCOLS_FL_RIGHT : 0) |
                                        (column->shrinks ? SCOLS_FL_TRUNC : 0)))
            return -ENOMEM;
    }
    table->widths = calloc(table->n_columns, sizeof(*table->widths));
    if (!table->widths)
        return -ENOMEM;
    for (unsigned i = 0; i < table->n_columns; i++)
        table->widths[i] = (unsigned)strlen(columns[i].name);
    *ret = TAKE_PTR(table);
    return 0;
}

Table *table_free(Table *table) {
    if (!table)
        return NULL;
    scols_unref_table(table->scols);
    free(table->widths);
    free(table);
    return NULL;
}

/* On a terminal: a byte a character, but for those that continue one. */
static unsigned width_of(const char *text) {
    unsigned n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* Takes the text over. */
static void add_cell(Table *table, char *text) {
    unsigned *width = &table->widths[table->at % table->n_columns];
    int r = text ? 0 : -ENOMEM;

    if (text)
        *width = MAX(*width, width_of(text));

    if (table->at % table->n_columns == 0)
        table->line = scols_table_new_line(table->scols, NULL);
    if (r == 0)
        r = table->line ? scols_line_refer_data(table->line, table->at % table->n_columns, text)
                        : -ENOMEM;
    if (r < 0) {
        free(text);
        table->error = r;
    }
    table->at++;
}

void table_bytes(Table *table, Bytes text) {
    Buffer cell = {};

    text_escape(&cell, text);
    text_putc(&cell, '\0');
    if (buffer_error(&cell))
        buffer_done(&cell);
    add_cell(table, (char *)cell.data);
}

void table_shown(Table *table, const char *text) {
    add_cell(table, strdup(text));
}

void table_color(Table *table, Color color) {
    unsigned column = (table->at - 1) % table->n_columns;
    struct libscols_cell *cell = table->line ? scols_line_get_cell(table->line, column) : NULL;

    if (cell && color != COLOR_NONE)
        (void)scols_cell_set_color(cell, color_sequence(color));
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
        add_cell(table, NULL);
        return;
    }
    table_bytes(table, (Bytes){.data = (const uint8_t *)text, .size = (size_t)n});
}

void table_count(Table *table, uint64_t n) {
    table_printf(table, "%" PRIu64, n);
}

/* With those before `drop` gone, and what may shrink not cut to nothing. */
static unsigned least_width(const Table *table, unsigned drop) {
    unsigned sum = 0;

    for (unsigned i = 0; i < table->n_columns; i++) {
        const Column *column = &table->columns[i];
        unsigned width = table->widths[i];

        if (column->drops > 0 && column->drops < drop)
            continue;
        sum += (column->shrinks ? MIN(width, (unsigned)SHRUNK_MIN) : width) + SEPARATOR_WIDTH;
    }
    return sum - MIN(sum, (unsigned)SEPARATOR_WIDTH);
}

static int drop_columns(Table *table) {
    unsigned drop = 1, last = 0;
    int r = 0;

    for (unsigned i = 0; i < table->n_columns; i++)
        last = MAX(last, table->columns[i].drops);
    while (table->terminal_width > 0 && drop <= last &&
           least_width(table, drop) > table->terminal_width)
        drop++;
    for (unsigned i = 0; r == 0 && i < table->n_columns; i++)
        if (table->columns[i].drops > 0 && table->columns[i].drops < drop)
            r = scols_column_set_flags(scols_table_get_column(table->scols, i), SCOLS_FL_HIDDEN);
    return r;
}

int table_print(Table *table, Buffer *out) {
    _cleanup_free_ char *text = NULL;
    int r = table->error;

    if (r < 0 || table->at == 0)
        return r;
    r = drop_columns(table);
    if (r < 0)
        return r;
    r = scols_print_table_to_string(table->scols, &text);
    if (r < 0)
        return r;
    text_puts(out, text);
    text_putc(out, '\n'); /* the library leaves the last one out */
    return buffer_error(out);
}
