/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the parts of `top` share. */

#include <pthread.h>

#include "client/top/top-table.h"
#include "client/top/top-world.h"
#include "client/view/view-work.h"

typedef struct TopSettings {
    ViewSettings view;
    unsigned sort; /* TopSort, counted from 1 */
} TopSettings;

/* What the reader and the screen share, under the lock. */
typedef struct TopShared {
    pthread_mutex_t lock;
    TopWorld world;
    unsigned generation; /* rises with each slice */
    char notice[160];    /* what is wrong with the stream; empty: nothing */
    uint64_t wanted_us;  /* read again, from this wall-clock time; 0: go on */
    bool stop;
} TopShared;

/* Follows profd on a thread of its own and makes slices of what comes. */
typedef struct TopReader TopReader;

/* Opens the stream; an ExitStatus, failures were reported. */
int top_reader_open(Context *c, const TopSettings *settings, TopShared *shared, TopReader **ret);
/* Reads recordings instead, once; an ExitStatus. */
int top_reader_load(Context *c, const TopSettings *settings, char **files, TopShared *shared,
                    TopReader **ret);
int top_reader_start(TopReader *reader);
TopReader *top_reader_free(TopReader *reader);
DEFINE_CLEANUP(TopReader *, top_reader_free);
/* The host or the recordings, not escaped. */
const char *top_reader_title(const TopReader *reader);
bool top_reader_is_live(const TopReader *reader);
/* The filter of the options, for what is shown; samples that it leaves out are kept. */
const FrameFilter *top_reader_filter(const TopReader *reader);

enum { TOP_PROMPT_MAX = 128 };

typedef enum TopPrompt { TOP_PROMPT_NONE, TOP_PROMPT_FILTER, TOP_PROMPT_KEYS } TopPrompt;

/* What the user chose. */
typedef struct Top {
    Context *context;
    TopShared *shared;
    TopReader *reader;
    TopChoice choice;
    Buffer zoomed; /* which the choice borrows */
    size_t window; /* a row of the table of windows */
    bool is_paused, shows_help, is_stale, is_done;
    uint64_t until_ns; /* of a paused screen */
    unsigned drawn;    /* the generation that the table is of */
    TopTable table;
    size_t selected, first; /* lines of the table */
    TopPrompt prompt;
    char typed[TOP_PROMPT_MAX];
    char message[TOP_PROMPT_MAX]; /* answers a key; until the next one */
    bool is_busy;                 /* the reader names frames, the table is the last one */
} Top;

/* Draws everything. */
void top_screen_draw(Top *top);
/* How many lines of the table fit on the screen. */
size_t top_screen_lines(void);
/* Does what a key of ncurses means. */
void top_input_key(Top *top, int key);
