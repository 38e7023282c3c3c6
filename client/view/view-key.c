/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/view/view-key.h"

#include <errno.h>
#include <string.h>

/* The table of keys that samples are grouped by. */

/* clang-format off */
static const struct { const char *name; ProfileKey label; } rows[VIEW_KEYS] = {
    [VIEW_KEY_COMM]      = { "comm",      PROFILE_COMM      },
    [VIEW_KEY_PID]       = { "pid",       PROFILE_PID       },
    [VIEW_KEY_TID]       = { "tid",       PROFILE_TID       },
    [VIEW_KEY_CGROUP]    = { "cgroup",    PROFILE_CGROUP    },
    [VIEW_KEY_UNIT]      = { "unit",      PROFILE_UNIT      },
    [VIEW_KEY_CONTAINER] = { "container", PROFILE_CONTAINER },
    [VIEW_KEY_DSO]       = { "dso",       PROFILE_KEYS      },
    [VIEW_KEY_SYMBOL]    = { "symbol",    PROFILE_KEYS      },
    [VIEW_KEY_SRCLINE]   = { "srcline",   PROFILE_KEYS      },
    [VIEW_KEY_CPU]       = { "cpu",       PROFILE_CPU       },
    [VIEW_KEY_EVENT]     = { "event",     PROFILE_EVENT     },
    [VIEW_KEY_TIME]      = { "time",      PROFILE_TIME      },
};
/* clang-format on */

const char *view_key_name(ViewKey key) {
    return rows[key].name;
}

ProfileKey view_key_label(ViewKey key) {
    return rows[key].label;
}

unsigned view_keys_labels(const ViewKeys *keys) {
    unsigned bits = 0;

    for (size_t i = 0; i < keys->n; i++)
        if (rows[keys->items[i]].label != PROFILE_KEYS)
            bits |= profile_key_bit(rows[keys->items[i]].label);
    return bits;
}

bool view_keys_hold(const ViewKeys *keys, ViewKey key) {
    for (size_t i = 0; i < keys->n; i++)
        if (keys->items[i] == key)
            return true;
    return false;
}

static int view_key_add(ViewKeys *keys, const char *word) {
    for (ViewKey key = 0; key < VIEW_KEYS; key++)
        if (strcmp(rows[key].name, word) == 0) {
            if (!view_keys_hold(keys, key))
                keys->items[keys->n++] = key;
            return 0;
        }
    return -EINVAL;
}

int view_option_by(const Option *option, const char *argument, void *field) {
    OptionWords words = {};
    int r = option_words(option, argument, &words);

    for (size_t i = 0; i < words.n && r >= 0; i++)
        r = view_key_add(field, words.items[i]);
    option_words_done(&words);
    return r;
}
