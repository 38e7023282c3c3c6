/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/row/profile-row.h"

/* The table of keys that rows can have: those of the labels, by the numbers of ProfileKey, and
 * behind them those of the frames. */

/* clang-format off */
static const struct { const char *name; bool is_number; } rows[ROW_KEYS] = {
    [PROFILE_EVENT]     = { "event",     false },
    [PROFILE_COMM]      = { "comm",      false },
    [PROFILE_PID]       = { "pid",       true  },
    [PROFILE_TID]       = { "tid",       true  },
    [PROFILE_CPU]       = { "cpu",       true  },
    [PROFILE_CGROUP]    = { "cgroup",    false },
    [PROFILE_UNIT]      = { "unit",      false },
    [PROFILE_CONTAINER] = { "container", false },
    [PROFILE_TIME]      = { "time",      true  },
    [ROW_DSO]           = { "dso",       false },
    [ROW_SYMBOL]        = { "symbol",    false },
    [ROW_SRCLINE]       = { "srcline",   false },
};
/* clang-format on */

const char *row_key_name(unsigned key) {
    return rows[key].name;
}

unsigned row_key_by_name(const char *name) {
    unsigned key = 0;

    while (key < ROW_KEYS && strcmp(rows[key].name, name) != 0)
        key++;
    return key;
}

bool row_key_is_number(unsigned key) {
    return rows[key].is_number;
}

bool row_keys_hold(const RowKeys *keys, unsigned key) {
    for (size_t i = 0; i < keys->n; i++)
        if (keys->items[i] == key)
            return true;
    return false;
}

bool row_keys_have_frame(const RowKeys *keys) {
    for (size_t i = 0; i < keys->n; i++)
        if (keys->items[i] >= PROFILE_KEYS)
            return true;
    return false;
}

unsigned row_keys_labels(const RowKeys *keys) {
    unsigned bits = 0;

    for (size_t i = 0; i < keys->n; i++)
        if (keys->items[i] < PROFILE_KEYS)
            bits |= profile_key_bit(keys->items[i]);
    return bits;
}
