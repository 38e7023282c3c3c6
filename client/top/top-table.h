/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The lines that `top` shows, as text: rows by keys, or the callers or callees of one row. A table
 * is independent of the world that it was made of. */

#include "client/top/top-world.h"
#include "profile/row/profile-row.h"
#include "profile/row/profile-tree.h"

enum { TOP_LINES_MAX = 10000, TOP_FILTER_MAX = 128 };

typedef struct TopLine {
    double self, total;       /* shares of the window, 0 to 1 */
    uint64_t samples;         /* behind `self`; of a line of a tree behind `total` */
    uint32_t depth;           /* of a line of a tree */
    uint32_t cells[ROW_KEYS]; /* where the text of each key is; of a tree the first alone */
} TopLine;

typedef struct TopTable {
    RowKeys keys;
    TopLine *lines;
    size_t n;
    Buffer text;      /* escaped, each followed by a NUL */
    size_t n_hidden;  /* rows that the filter left out */
    uint64_t samples; /* of the event, in the window */
    uint64_t lost;
    size_t n_gaps;   /* in the window */
    double cpus;     /* busy by the event, if that is one of time; else 0 */
    double window_s; /* what the samples are of: the window without gaps of all CPUs */
    uint32_t event;  /* that was shown; PROFILE_NONE: there is none */
    char event_name[64];
    unsigned n_events;
    bool has_zoom; /* the row that was zoomed into is there */
} TopTable;

typedef struct TopChoice {
    RowKeys keys;
    RowSort sort;
    bool by_period;
    unsigned event;              /* the n-th by its samples */
    char filter[TOP_FILTER_MAX]; /* a part of a name, in any case; escaped */
    bool is_zoomed;
    TreeDirection direction;
    Bytes zoomed; /* all of the row's text, as top_line_text() has it; borrowed */
} TopChoice;

typedef struct TopWindow {
    uint64_t seconds;
    const char *name;
} TopWindow;

/* Ends with a row without a name. */
extern const TopWindow top_windows[];

/* Makes the table of what is selected of the world. 0 or -ENOMEM, and then it is empty. */
int top_table_fill(TopTable *table, const TopWorld *world, const TopChoice *choice);
void top_table_done(TopTable *table);
const char *top_table_cell(const TopTable *table, const TopLine *line, size_t key);
/* The cells of a row, each followed by a NUL; valid as long as the table. No line of a tree has
 * them. */
Bytes top_line_text(const TopTable *table, const TopLine *line);
