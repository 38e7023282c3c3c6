/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/table.h"

#include <errno.h>
#include <inttypes.h>
#include <libsmartcols.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

#include "util/text.h"

/*
 * A thin coat over libsmartcols: it counts the cells, escapes them by our one escape, and tells
 * the library the width of the terminal, which it cannot see once a pager stands in between.
 */

struct Table {
    struct libscols_table *scols;
    struct libscols_line *line;
    unsigned n_columns, at;
    int error;
};

/* Of the terminal that the result ends up on; 0 where there is none. */
static unsigned terminal_width(const Context *c) {
    struct winsize size;

    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
        return 0;
    return size.ws_col;
}

int table_new(const Context *c, const Column *columns, Table **ret) {
    _cleanup_(table_freep) Table *table = calloc(1, sizeof(*table));
    unsigned width = terminal_width(c);

    if (!table)
        return -ENOMEM;
    table->scols = scols_new_table();
    if (!table->scols)
        return -ENOMEM;
    (void)scols_table_enable_noencoding(table->scols, 1);
    (void)scols_table_enable_noheadings(table->scols, c->no_legend);
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
    *ret = TAKE_PTR(table);
    return 0;
}

Table *table_free(Table *table) {
    if (!table)
        return NULL;
    scols_unref_table(table->scols);
    free(table);
    return NULL;
}

/* Takes the text over. */
static void add_cell(Table *table, char *text) {
    int r = text ? 0 : -ENOMEM;

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

int table_print(Table *table, Buffer *out) {
    _cleanup_free_ char *text = NULL;
    int r = table->error;

    if (r < 0 || table->at == 0)
        return r;
    r = scols_print_table_to_string(table->scols, &text);
    if (r < 0)
        return r;
    text_puts(out, text);
    text_putc(out, '\n'); /* the library leaves the last one out */
    return buffer_error(out);
}
