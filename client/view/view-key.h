/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The keys of --by. */

#include "client/frame/option.h"
#include "profile/profile.h"

typedef enum ViewKey {
    VIEW_KEY_COMM,
    VIEW_KEY_PID,
    VIEW_KEY_TID,
    VIEW_KEY_CGROUP,
    VIEW_KEY_UNIT,
    VIEW_KEY_CONTAINER,
    VIEW_KEY_DSO,
    VIEW_KEY_SYMBOL,
    VIEW_KEY_SRCLINE,
    VIEW_KEY_CPU,
    VIEW_KEY_EVENT,
    VIEW_KEY_TIME,
    VIEW_KEYS,
} ViewKey;

#define VIEW_KEY_WORDS                                                                             \
    "comm, pid, tid, cgroup, unit, container, dso, symbol, srcline, cpu, event, time"

typedef struct ViewKeys {
    ViewKey items[VIEW_KEYS]; /* each once */
    size_t n;
} ViewKeys;

/* "comm" */
const char *view_key_name(ViewKey key);
/* The key that the labels of a profile keep; PROFILE_KEYS: it follows from the frame. */
ProfileKey view_key_label(ViewKey key);
/* The bits of ProfileKey that these keys need. */
unsigned view_keys_labels(const ViewKeys *keys);
bool view_keys_hold(const ViewKeys *keys, ViewKey key);

/* Field: ViewKeys. Words separated by commas; a repeated option adds. */
int view_option_by(const Option *option, const char *argument, void *field);
