/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "client/top/top-state.h"
#include "util/clock.h"
#include "util/file.h"

/*
 * `profctl top`: a full screen that shows where time is spent, as it is spent. A thread follows
 * profd (top-reader.c) and keeps slices of time (top-world.c); this one makes a table of the window
 * (top-table.c), draws it (top-screen.c) and takes keys (top-input.c). While the reader is busy
 * with symbols, the last table stays on the screen and keys still work.
 *
 * What is written to stderr meanwhile would spoil the screen; it is kept and shown at the end.
 */

enum { TICK_MS = 100, ESCAPE_MS = 25, LONG_WINDOW_S = 300, LONG_SLICES = 5 };

static uint64_t top_since_ns(const Top *top, uint64_t until_ns) {
    uint64_t span = top_windows[top->window].seconds * NS_PER_SECOND;

    return top_reader_is_live(top->reader) && until_ns > span ? until_ns - span : 0;
}

/* A long window changes little in a second and costs more. */
static bool top_is_due(const Top *top) {
    unsigned news = top->shared->generation - top->drawn;
    bool is_long = top_windows[top->window].seconds >= LONG_WINDOW_S;

    return top->is_stale || (!top->is_paused && news >= (is_long ? LONG_SLICES : 1U));
}

static void top_refresh(Top *top) {
    TopShared *shared = top->shared;
    uint64_t until;

    top->is_busy = pthread_mutex_trylock(&shared->lock) != 0;
    if (top->is_busy)
        return;
    if (top_is_due(top)) {
        until = top->is_paused ? top->until_ns : shared->world.end_ns;
        if (!shared->world.names ||
            top_world_select(&shared->world, top_since_ns(top, until), until) < 0 ||
            frame_filter_apply(top_reader_filter(top->reader), shared->world.merge.into,
                               shared->world.names) < 0)
            top_table_done(&top->table);
        else
            (void)top_table_fill(&top->table, &shared->world, &top->choice);
        top->drawn = shared->generation;
        top->is_stale = false;
    }
    pthread_mutex_unlock(&shared->lock);
    if (top->selected >= top->table.n)
        top->selected = top->table.n > 0 ? top->table.n - 1 : 0;
    top->first = MIN(top->first, top->selected);
}

static void top_loop(Top *top) {
    while (!top->is_done) {
        int key;

        top_refresh(top);
        top_screen_draw(top);
        key = getch();
        if (key == KEY_RESIZE)
            top->is_stale = true;
        else if (key != ERR)
            top_input_key(top, key);
    }
}

/* Opens the screen; stderr goes to an unlinked file, whose descriptor is returned with the old one.
 */
static int top_hide_stderr(int *ret_old) {
    _cleanup_close_ int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    int old = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

    if (old < 0)
        return -errno;
    if (fd < 0)
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0) {
        (void)close(old);
        return -errno;
    }
    *ret_old = old;
    return TAKE_FD(fd);
}

static void top_show_stderr(int hidden, int old) {
    char text[4096];
    ssize_t n;

    (void)dup2(old, STDERR_FILENO);
    n = pread(hidden, text, sizeof(text), 0);
    if (n > 0)
        (void)file_write_all(STDERR_FILENO, text, (size_t)n);
    (void)close(old);
}

static int top_show(Top *top) {
    _cleanup_close_ int hidden = -1;
    int old = -1, r;

    (void)setlocale(LC_CTYPE, "");
    hidden = top_hide_stderr(&old);
    if (hidden < 0)
        return complain(STATUS_FAILED, "Failed to open the screen: %s.", strerror(-hidden));
    if (!newterm(NULL, stdout, stdin)) {
        top_show_stderr(hidden, old);
        return complain(STATUS_FAILED,
                        "The terminal '%s' is not known here; set TERM to one that is, as xterm.",
                        getenv("TERM") ?: "");
    }
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)keypad(stdscr, TRUE);
    (void)curs_set(0);
    set_escdelay(ESCAPE_MS);
    timeout(TICK_MS);
    r = top_reader_is_live(top->reader) ? top_reader_start(top->reader) : 0;
    if (r == 0)
        top_loop(top);
    (void)endwin();
    top_show_stderr(hidden, old);
    return r < 0 ? complain(STATUS_FAILED, "Failed to start top: %s.", strerror(-r)) : STATUS_OK;
}

static void top_choose(Top *top, const TopSettings *s) {
    static const RowKeys usual = {{PROFILE_COMM, ROW_DSO, ROW_SYMBOL}, 3};
    uint64_t last_s = s->view.last.set ? s->view.last.us / US_PER_SECOND : 10;

    top->choice = (TopChoice){.keys = s->view.by.n > 0 ? s->view.by : usual,
                              .sort = s->sort > 0 ? s->sort - 1 : ROW_BY_SELF,
                              .by_period = view_by_period(&s->view, true)};
    while (top_windows[top->window + 1].name && top_windows[top->window].seconds < last_s)
        top->window++;
    top->is_stale = true;
    top->table.event = PROFILE_NONE;
}

static int top_run(Context *c, void *settings, char **arguments) {
    const TopSettings *s = settings;
    TopShared shared = {.lock = PTHREAD_MUTEX_INITIALIZER};
    Top top = {.context = c, .shared = &shared};
    int status;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return complain(STATUS_USAGE, "'top' needs a terminal; 'profctl report' prints the same, "
                                      "and 'ssh -t HOST profctl top' shows another host.");
    if (row_keys_hold(&s->view.by, PROFILE_TIME) || row_keys_hold(&s->view.by, ROW_SRCLINE))
        return complain(STATUS_USAGE, "'top' does not group by time or srcline; 'report' does.");
    status = *arguments ? top_reader_load(c, s, arguments, &shared, &top.reader)
                        : top_reader_open(c, s, &shared, &top.reader);
    if (status == STATUS_OK) {
        top_choose(&top, s);
        status = top_show(&top);
    }
    top_reader_free(top.reader);
    top_table_done(&top.table);
    buffer_done(&top.zoomed);
    top_world_done(&shared.world);
    return status;
}

static void top_settings_done(void *settings) {
    view_settings_done(&((TopSettings *)settings)->view);
}

/* clang-format off */
static const Option top_options[] = {
    VIEW_BY_OPTIONS(TopSettings, view)
    {0,   "sort",    "self|total|name", "Sort by SELF (default), by TOTAL, or by name", option_choice, offsetof(TopSettings, sort)},
    {0,   "last",    "SPAN",    "The window to begin with, by default 10s; w and W change it", option_span, offsetof(TopSettings, view.last)},
    {'s', "session", "SESSION", "Session of the running profd, by default 'default'", option_string, offsetof(TopSettings, view.session)},
    VIEW_FILTER_OPTIONS(TopSettings, view)
    VIEW_WEIGHT_OPTIONS(TopSettings, view)
    {},
};
/* clang-format on */

const Command command_top = {
    .name = "top",
    .group = COMMAND_VIEW,
    .arguments = "[FILE…]",
    .n_max = UINT_MAX,
    .summary = "Show live where time is spent, on a full screen",
    .notes = "Without FILE it follows the running profd, which members of profd-read may. FILE is "
             "a perf.data file, or what 'archive' has packed; it is shown as a whole.\n\n"
             "Keys: arrows choose a row, enter shows its callers and then its callees, space "
             "pauses, w and W change the window, s sorts, b and g group, / filters, e changes the "
             "event, p weighs by counts or periods, ? shows all keys, q quits.",
    .options = top_options,
    .settings_size = sizeof(TopSettings),
    .run = top_run,
    .done = top_settings_done,
    .live = true,
};
