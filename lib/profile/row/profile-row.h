/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The rows of a table: the samples of a profile by some keys, "comm, dso, symbol". A row has the
 * samples that were taken in it, and those with it anywhere in their stack, each counted once.
 */

#include "profile/frame-names.h"
#include "profile/profile.h"
#include "util/buffer.h"

/* A key of the labels, as ProfileKey, or one of the frames. */
enum { ROW_DSO = PROFILE_KEYS, ROW_SYMBOL, ROW_SRCLINE, ROW_KEYS };

typedef struct RowKeys {
    uint8_t items[ROW_KEYS]; /* each once */
    size_t n;
} RowKeys;

bool row_keys_hold(const RowKeys *keys, unsigned key);
/* Whether one of them is a key of the frames. */
bool row_keys_have_frame(const RowKeys *keys);
/* The labels that they need, bits of ProfileKey. */
unsigned row_keys_labels(const RowKeys *keys);

/* "comm", "symbol" */
const char *row_key_name(unsigned key);
/* ROW_KEYS: no key has this name. */
unsigned row_key_by_name(const char *name);
/* pid, tid, cpu, time: the value is a number. */
bool row_key_is_number(unsigned key);

typedef struct ProfileRow {
    uint32_t label;                       /* one with the values of the row */
    uint32_t place;                       /* one with the values of the row, UINT32_MAX: none */
    uint64_t samples, period;             /* taken in it */
    uint64_t total_samples, total_period; /* taken in it or in what it called */
} ProfileRow;

/*
 * A place is what a frame shows: a line of FrameNames.lines, which is an inlined function or the
 * function that contains the code. Without names it is the frame.
 */
typedef struct RowTable {
    const Profile *profile;  /* borrowed */
    const FrameNames *names; /* borrowed; NULL: symbols and source lines are empty */
    RowKeys keys;
    uint32_t event; /* PROFILE_NONE: all */
    ProfileRow *rows;
    uint32_t *order; /* numbers of rows as row_table_sort() has sorted them; else NULL */
    size_t n;
    uint64_t samples, period; /* of all rows */
    struct RowIndex *index;
} RowTable;

/* Makes the rows of one event, or of all for PROFILE_NONE. -ENOMEM. */
int row_table_new(const Profile *profile, const FrameNames *names, const RowKeys *keys,
                  uint32_t event, RowTable **ret);
RowTable *row_table_free(RowTable *table);
DEFINE_CLEANUP(RowTable *, row_table_free);

/* The number of the row of a place (UINT32_MAX: none) of a sample with this label; UINT32_MAX:
 * there is no such row. */
uint32_t row_table_find(const RowTable *table, uint32_t label, uint32_t place);

/* The places of a stack, the innermost first; replaces the content of `ret`, an array of u32. */
int row_table_places(const RowTable *table, uint32_t stack, Buffer *ret);
/* The name of the function of a place, a number in FrameNames.texts. */
uint32_t row_table_function(const RowTable *table, uint32_t place);

/* Appends the value of a key, not escaped; nothing where it has none. */
void row_table_put(const RowTable *table, const ProfileRow *row, unsigned key, Buffer *out);
/* The value of a key that is a number; PROFILE_NONE: there is none. */
uint32_t row_table_number(const RowTable *table, const ProfileRow *row, unsigned key);

typedef enum RowSort { ROW_BY_SELF, ROW_BY_TOTAL, ROW_BY_NAME } RowSort;

/* Sets `order`: the largest first, ties by the values of their keys. `by_period`: compares periods.
 * -ENOMEM. */
int row_table_sort(RowTable *table, RowSort sort, bool by_period);
