/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <curses.h>
#include <langinfo.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/frame/figure.h"
#include "client/frame/width.h"
#include "client/top/top-state.h"
#include "util/text.h"

/*
 * The screen: two lines of facts, a line for what is wrong or asked, the heading, the table, and
 * the keys. Everything is drawn anew each time; ncurses sends what has changed. Text is escaped
 * before it comes here, and cut by columns, never within a character.
 */

enum { HEAD_LINES = 4, FOOT_LINES = 1, KEY_WIDTH_MIN = 5, NUMBERS_WIDTH = 24, TEXT_MAX = 512 };

size_t top_screen_lines(void) {
    return LINES > HEAD_LINES + FOOT_LINES ? (size_t)(LINES - HEAD_LINES - FOOT_LINES) : 0;
}

/* In a locale without UTF-8, bytes that are not ASCII would be drawn as other characters. */
static void top_screen_put(int y, int x, int columns, const char *text) {
    size_t n = strlen(text);
    char plain[TEXT_MAX];

    if (columns <= 0 || y >= LINES || x >= COLS)
        return;
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0) {
        n = MIN(n, sizeof(plain) - 1);
        for (size_t i = 0; i < n; i++)
            plain[i] = (uint8_t)text[i] < 0x80 ? text[i] : '?';
        plain[n] = '\0';
        text = plain;
    }
    columns = MIN(columns, COLS - x);
    (void)mvaddnstr(y, x, text, (int)width_fit(text, n, (size_t)columns));
}

static void top_screen_line(int y, int attributes, const char *text) {
    (void)attron(attributes);
    top_screen_put(y, 0, COLS, text);
    (void)attroff(attributes);
}

static void top_screen_title(const Top *top) {
    _cleanup_(buffer_done) Buffer line = {};
    char clock[16];
    time_t now = time(NULL);
    struct tm tm;

    text_puts(&line, "profctl top - ");
    text_escape_str(&line, top_reader_title(top->reader));
    if (top_reader_is_live(top->reader))
        text_printf(&line, "  window %s (w/W)", top_windows[top->window].name);
    if (localtime_r(&now, &tm) && strftime(clock, sizeof(clock), "%H:%M:%S", &tm) > 0)
        text_printf(&line, "  %s", clock);
    if (top->is_paused)
        text_puts(&line, "  PAUSED");
    text_putc(&line, '\0');
    if (!buffer_error(&line))
        top_screen_line(0, A_BOLD, (const char *)line.data);
}

static void top_screen_facts(const Top *top) {
    const TopTable *table = &top->table;
    _cleanup_(buffer_done) Buffer line = {};

    if (table->event == PROFILE_NONE) {
        top_screen_line(1, A_NORMAL, "No samples in this window.");
        return;
    }
    text_printf(&line, "%s: ", table->event_name);
    figure_count(&line, table->samples);
    text_printf(&line, " samples in %.1f s", table->window_s);
    if (table->cpus > 0)
        text_printf(&line, ", %.2f CPUs busy", table->cpus);
    if (table->n_events > 1)
        text_printf(&line, ", event %u of %u (e)", top->choice.event % table->n_events + 1,
                    table->n_events);
    text_putc(&line, '\0');
    if (buffer_error(&line))
        return;
    top_screen_line(1, A_NORMAL, (const char *)line.data);
    if (table->lost == 0)
        return;
    line.size--;
    text_puts(&line, ", ");
    figure_count(&line, table->lost);
    text_puts(&line, table->n_events > 1 ? " LOST of all events" : " LOST");
    text_putc(&line, '\0');
    if (!buffer_error(&line))
        top_screen_line(1, A_BOLD, (const char *)line.data);
}

/* "Callers of", and the cells of the row, separated by spaces. */
static void top_screen_zoom(const TopChoice *choice, char *ret, size_t size) {
    size_t n = (size_t)snprintf(ret, size, "%s of ",
                                choice->direction == TREE_CALLERS ? "Callers" : "Callees");

    for (size_t i = 0; i + 1 < choice->zoomed.size && n + 1 < size; i++)
        ret[n++] = (char)(choice->zoomed.data[i] ?: ' ');
    ret[n] = '\0';
}

static void top_screen_notice(Top *top) {
    char line[2 * TEXT_MAX], notice[sizeof(top->shared->notice)] = "";
    size_t gaps = top->table.n_gaps;

    if (pthread_mutex_trylock(&top->shared->lock) == 0) {
        memcpy(notice, top->shared->notice, sizeof(notice));
        pthread_mutex_unlock(&top->shared->lock);
    }
    if (top->prompt != TOP_PROMPT_NONE)
        snprintf(line, sizeof(line), "%s: %s_",
                 top->prompt == TOP_PROMPT_FILTER ? "Show rows with" : "Group by", top->typed);
    else if (top->message[0])
        snprintf(line, sizeof(line), "%s", top->message);
    else if (notice[0])
        snprintf(line, sizeof(line), "%s", notice);
    else if (top->is_busy)
        snprintf(line, sizeof(line), "Reading symbols…");
    else if (top->choice.is_zoomed)
        top_screen_zoom(&top->choice, line, sizeof(line));
    else if (top->choice.filter[0])
        snprintf(line, sizeof(line), "Rows with '%s', %zu others are hidden.", top->choice.filter,
                 top->table.n_hidden);
    else if (gaps > 0)
        snprintf(line, sizeof(line), "profd did not record all of this window (%zu gap%s).", gaps,
                 gaps > 1 ? "s" : "");
    else
        line[0] = '\0';
    top_screen_line(2, A_BOLD, line);
}

/* Widths of the columns of keys: as wide as their values need, the last one gets the rest. */
static void top_screen_widths(const Top *top, int widths[ROW_KEYS]) {
    const TopTable *table = &top->table;
    int rest = COLS - NUMBERS_WIDTH;
    size_t last = MIN(top->first + top_screen_lines(), table->n);

    for (size_t k = 0; k + 1 < table->keys.n; k++) {
        size_t wanted = MAX(strlen(row_key_name(table->keys.items[k])), (size_t)KEY_WIDTH_MIN);
        int share = rest / (int)(table->keys.n - k);

        for (size_t i = top->first; i < last; i++) {
            const char *text = top_table_cell(table, &table->lines[i], k);

            wanted = MAX(wanted, width_of(text, strlen(text)));
        }
        share = MAX(share, (int)KEY_WIDTH_MIN);
        widths[k] = wanted < (size_t)share ? (int)wanted + 1 : share;
        rest -= widths[k];
    }
    if (table->keys.n > 0)
        widths[table->keys.n - 1] = rest;
}

static void top_screen_heading(const Top *top, const int *widths) {
    static const char *const sorts[] = {
        [ROW_BY_SELF] = "self", [ROW_BY_TOTAL] = "total", [ROW_BY_NAME] = "name"};
    char text[TEXT_MAX];
    int x = NUMBERS_WIDTH;

    (void)attron(A_REVERSE);
    (void)mvhline(HEAD_LINES - 1, 0, ' ', COLS);
    snprintf(text, sizeof(text), "%6s%7s%9s", top->choice.is_zoomed ? "" : "SELF", "TOTAL",
             "SAMPLES");
    top_screen_put(HEAD_LINES - 1, 0, NUMBERS_WIDTH, text);
    for (size_t k = 0; k < top->table.keys.n && !top->choice.is_zoomed; k++) {
        snprintf(text, sizeof(text), "%s", row_key_name(top->table.keys.items[k]));
        for (char *p = text; *p; p++)
            *p = (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
        top_screen_put(HEAD_LINES - 1, x, widths[k] - 1, text);
        x += widths[k];
    }
    snprintf(text, sizeof(text), " by %s (s) ", sorts[top->choice.sort]);
    if (!top->choice.is_zoomed)
        top_screen_put(HEAD_LINES - 1, COLS - (int)strlen(text), (int)strlen(text), text);
    (void)attroff(A_REVERSE);
}

static void top_screen_row(const Top *top, int y, const TopLine *line, const int *widths) {
    const TopTable *table = &top->table;
    _cleanup_(buffer_done) Buffer count = {};
    char text[TEXT_MAX];
    int x = NUMBERS_WIDTH;

    figure_count(&count, line->samples);
    text_putc(&count, '\0');
    if (buffer_error(&count))
        return;
    if (top->choice.is_zoomed)
        snprintf(text, sizeof(text), "%6s%6.1f%%%9s", "", 100 * line->total,
                 (const char *)count.data);
    else
        snprintf(text, sizeof(text), "%5.1f%%%6.1f%%%9s", 100 * line->self, 100 * line->total,
                 (const char *)count.data);
    top_screen_put(y, 0, NUMBERS_WIDTH, text);
    if (top->choice.is_zoomed) {
        x += MIN(2 * (int)line->depth, COLS / 2);
        top_screen_put(y, x, COLS - x, top_table_cell(table, line, 0));
        return;
    }
    for (size_t k = 0; k < table->keys.n; k++) {
        top_screen_put(y, x, widths[k] - (k + 1 < table->keys.n), top_table_cell(table, line, k));
        x += widths[k];
    }
}

static void top_screen_rows(const Top *top) {
    const TopTable *table = &top->table;
    int widths[ROW_KEYS] = {};
    size_t lines = top_screen_lines();

    top_screen_widths(top, widths);
    top_screen_heading(top, widths);
    for (size_t i = 0; i < lines && top->first + i < table->n; i++) {
        int y = HEAD_LINES + (int)i;
        bool is_selected = top->first + i == top->selected;

        if (is_selected) {
            (void)attron(A_REVERSE);
            (void)mvhline(y, 0, ' ', COLS);
        }
        top_screen_row(top, y, &table->lines[top->first + i], widths);
        if (is_selected)
            (void)attroff(A_REVERSE);
    }
    if (top->choice.is_zoomed && table->n == 0)
        top_screen_put(HEAD_LINES, 0, COLS,
                       table->has_zoom ? "Nothing calls it, or it calls nothing."
                                       : "This row has no samples in this window.");
}

static void top_screen_help(void) {
    static const char *const lines[] = {
        "up, down, page up, page down, home, end   choose a row; j and k too",
        "enter     show what calls the function of the row; again, or tab: what it calls",
        "escape    back to the table; else clear the filter",
        "space     pause, and go on",
        "w, W      a longer or shorter window: now, 5 s, … 1 h",
        "s         sort by self, total or name",
        "b         group by the next keys: comm, unit, container, symbol, …",
        "g         type the keys to group by, as unit,symbol",
        "/         show only rows with a text",
        "e         the next event",
        "p         weigh by periods (time, cycles) or by counts of samples",
        "q         quit",
        "",
        "SELF is the share of samples in a row, TOTAL that with what it called.",
        "LOST samples were dropped by the kernel since a buffer was full.",
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        top_screen_put(HEAD_LINES + (int)i, 2, COLS - 2, lines[i]);
}

static void top_screen_keys(const Top *top) {
    const char *text = top->prompt != TOP_PROMPT_NONE ? "enter take  escape forget"
                       : top->choice.is_zoomed
                           ? "escape back  tab callers/callees  space pause  q quit"
                           : "q quit  space pause  enter zoom  / filter  b g group  ? help";

    top_screen_line(LINES - 1, A_DIM, text);
}

void top_screen_draw(Top *top) {
    (void)erase();
    top_screen_title(top);
    top_screen_facts(top);
    top_screen_notice(top);
    if (top->shows_help)
        top_screen_help();
    else
        top_screen_rows(top);
    top_screen_keys(top);
    (void)refresh();
}
