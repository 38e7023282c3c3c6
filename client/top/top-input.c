/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <curses.h>
#include <stdio.h>
#include <string.h>

#include "client/frame/figure.h"
#include "client/top/top-state.h"
#include "util/clock.h"

/* What keys do: each changes the choice, and the next refresh shows it. A prompt takes all keys. */

enum { KEY_ESCAPE = 27, KEY_DELETE = 127, KEY_CONTROL_H = 8 };

static const RowKeys top_groups[] = {
    {{PROFILE_COMM, ROW_DSO, ROW_SYMBOL}, 3},
    {{PROFILE_COMM}, 1},
    {{PROFILE_UNIT}, 1},
    {{PROFILE_CONTAINER}, 1},
    {{PROFILE_CGROUP}, 1},
    {{PROFILE_PID, PROFILE_COMM}, 2},
    {{PROFILE_UNIT, ROW_SYMBOL}, 2},
    {{ROW_SYMBOL}, 1},
    {{ROW_DSO}, 1},
    {{PROFILE_CPU}, 1},
};

static void top_input_group(Top *top, const RowKeys *keys) {
    top->choice.keys = *keys;
    top->choice.is_zoomed = false;
    top->selected = top->first = 0;
}

static void top_input_next_group(Top *top) {
    size_t n = sizeof(top_groups) / sizeof(*top_groups), next = 0;

    for (size_t i = 0; i < n; i++)
        if (top_groups[i].n == top->choice.keys.n &&
            memcmp(top_groups[i].items, top->choice.keys.items, top_groups[i].n) == 0)
            next = (i + 1) % n;
    top_input_group(top, &top_groups[next]);
}

static void top_input_take_keys(Top *top) {
    RowKeys keys = {};
    char words[TOP_PROMPT_MAX], *rest = words, *word;

    snprintf(words, sizeof(words), "%s", top->typed);
    while ((word = strsep(&rest, ", "))) {
        unsigned key = row_key_by_name(word);

        if (!*word)
            continue;
        if (key == ROW_KEYS || key == PROFILE_TIME || key == ROW_SRCLINE) {
            snprintf(top->message, sizeof(top->message),
                     "'%.40s' is none of comm, pid, tid, cgroup, unit, container, dso, symbol, "
                     "cpu, event.",
                     word);
            return;
        }
        if (!row_keys_hold(&keys, key))
            keys.items[keys.n++] = (uint8_t)key;
    }
    if (keys.n > 0)
        top_input_group(top, &keys);
}

static void top_input_begin_prompt(Top *top, TopPrompt prompt) {
    size_t n = 0;

    top->prompt = prompt;
    top->typed[0] = '\0';
    if (prompt == TOP_PROMPT_FILTER)
        snprintf(top->typed, sizeof(top->typed), "%s", top->choice.filter);
    for (size_t i = 0; prompt == TOP_PROMPT_KEYS && i < top->choice.keys.n; i++)
        n += (size_t)snprintf(top->typed + n, sizeof(top->typed) - n, "%s%s", i > 0 ? "," : "",
                              row_key_name(top->choice.keys.items[i]));
}

static void top_input_end_prompt(Top *top, bool take) {
    TopPrompt prompt = top->prompt;

    top->prompt = TOP_PROMPT_NONE;
    if (take && prompt == TOP_PROMPT_FILTER) {
        snprintf(top->choice.filter, sizeof(top->choice.filter), "%s", top->typed);
        top->selected = top->first = 0;
    } else if (take)
        top_input_take_keys(top);
}

static void top_input_type(Top *top, int key) {
    size_t n = strlen(top->typed);

    if (key == KEY_ESCAPE || key == '\r' || key == '\n' || key == KEY_ENTER)
        top_input_end_prompt(top, key != KEY_ESCAPE);
    else if (key == KEY_BACKSPACE || key == KEY_DELETE || key == KEY_CONTROL_H)
        top->typed[n > 0 ? n - 1 : 0] = '\0';
    else if (key == ('u' & 0x1f))
        top->typed[0] = '\0';
    else if (key >= ' ' && key < KEY_DELETE && n + 1 < sizeof(top->typed)) {
        top->typed[n] = (char)key;
        top->typed[n + 1] = '\0';
    }
}

static void top_input_move(Top *top, int64_t by) {
    size_t n = top->table.n, lines = top_screen_lines();

    if (by < 0)
        top->selected -= MIN(top->selected, (size_t)-by);
    else
        top->selected = MIN(top->selected + (size_t)by, n > 0 ? n - 1 : 0);
    if (top->selected < top->first)
        top->first = top->selected;
    if (lines > 0 && top->selected >= top->first + lines)
        top->first = top->selected - lines + 1;
}

/* The table is made anew at each refresh, so the text of the row is copied. While the reader is
 * busy, the table may still be one of a zoom that was left. */
static bool top_input_choose_row(Top *top) {
    Bytes text;

    if (top->selected >= top->table.n || top->table.has_zoom)
        return false;
    text = top_line_text(&top->table, &top->table.lines[top->selected]);
    buffer_clear(&top->zoomed);
    buffer_append(&top->zoomed, text.data, text.size);
    top->choice.zoomed = buffer_bytes(&top->zoomed);
    return buffer_error(&top->zoomed) == 0;
}

static void top_input_zoom(Top *top) {
    if (top->choice.is_zoomed) {
        top->choice.direction = top->choice.direction == TREE_CALLERS ? TREE_CALLEES : TREE_CALLERS;
    } else {
        if (!top_input_choose_row(top))
            return;
        top->choice.is_zoomed = true;
        /* What has no function of its own is not called. */
        top->choice.direction =
            row_keys_hold(&top->choice.keys, ROW_SYMBOL) ? TREE_CALLERS : TREE_CALLEES;
    }
    top->selected = top->first = 0;
}

static void top_input_leave(Top *top) {
    if (top->shows_help)
        top->shows_help = false;
    else if (top->choice.is_zoomed)
        top->choice.is_zoomed = false;
    else
        top->choice.filter[0] = '\0';
    top->selected = top->first = 0;
}

/* More of the past than is here is asked for. */
static void top_input_window(Top *top, bool longer) {
    uint64_t seconds;

    if (!top_reader_is_live(top->reader)) {
        snprintf(top->message, sizeof(top->message),
                 "A recording has one window; --last shows a part of it.");
        return;
    }
    if (longer ? !top_windows[top->window + 1].name : top->window == 0)
        return;
    top->window += longer ? 1 : (size_t)-1;
    seconds = top_windows[top->window].seconds;
    if (top->is_paused)
        return;
    pthread_mutex_lock(&top->shared->lock);
    if (top->shared->world.end_ns - top->shared->world.begin_ns < seconds * NS_PER_SECOND * 9 / 10)
        top->shared->wanted_us = figure_now_us() - seconds * US_PER_SECOND;
    pthread_mutex_unlock(&top->shared->lock);
}

static void top_input_pause(Top *top) {
    top->is_paused = !top->is_paused;
    pthread_mutex_lock(&top->shared->lock);
    top->until_ns = top->shared->world.end_ns;
    pthread_mutex_unlock(&top->shared->lock);
}

/* Keys that choose what is shown; false: another key. */
static bool top_input_choose(Top *top, int key) {
    switch (key) {
    case 's':
        top->choice.sort = top->choice.sort == ROW_BY_SELF    ? ROW_BY_TOTAL
                           : top->choice.sort == ROW_BY_TOTAL ? ROW_BY_NAME
                                                              : ROW_BY_SELF;
        break;
    case 'b':
        top_input_next_group(top);
        break;
    case 'g':
        top_input_begin_prompt(top, TOP_PROMPT_KEYS);
        break;
    case '/':
        top_input_begin_prompt(top, TOP_PROMPT_FILTER);
        break;
    case 'e':
        top->choice.event++;
        break;
    case 'p':
        top->choice.by_period = !top->choice.by_period;
        snprintf(top->message, sizeof(top->message), "Shares are of %s.",
                 top->choice.by_period ? "periods" : "counts of samples");
        break;
    case 'w':
    case 'W':
        top_input_window(top, key == 'w');
        break;
    default:
        return false;
    }
    return true;
}

static void top_input_navigate(Top *top, int key) {
    int64_t page = (int64_t)top_screen_lines();

    switch (key) {
    case KEY_UP:
    case 'k':
        top_input_move(top, -1);
        break;
    case KEY_DOWN:
    case 'j':
        top_input_move(top, 1);
        break;
    case KEY_PPAGE:
        top_input_move(top, -page);
        break;
    case KEY_NPAGE:
        top_input_move(top, page);
        break;
    case KEY_HOME:
        top_input_move(top, -TOP_LINES_MAX);
        break;
    case KEY_END:
        top_input_move(top, TOP_LINES_MAX);
        break;
    }
}

void top_input_key(Top *top, int key) {
    top->message[0] = '\0';
    top->is_stale = true;
    if (top->prompt != TOP_PROMPT_NONE) {
        top_input_type(top, key);
        return;
    }
    if (top_input_choose(top, key))
        return;
    switch (key) {
    case 'q':
        top->is_done = true;
        break;
    case '?':
    case 'h':
        top->shows_help = !top->shows_help;
        break;
    case ' ':
        top_input_pause(top);
        break;
    case KEY_ESCAPE:
        top_input_leave(top);
        break;
    case '\t':
        if (top->choice.is_zoomed)
            top_input_zoom(top);
        break;
    case '\r':
    case '\n':
    case KEY_ENTER:
        top_input_zoom(top);
        break;
    default:
        top_input_navigate(top, key);
    }
}
