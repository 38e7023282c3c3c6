/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "config/config-private.h"

/*
 * Finds what a new configuration changes, by the table: each row knows the offset of its key and
 * what a change of it touches.
 */

static unsigned config_diff_touches(const char *section, const void *old, const void *new) {
    unsigned touched = 0;
    ConfigTable table = config_table();

    for (size_t i = 0; i < table.n; i++)
        if (strcmp(table.keys[i].section, section) == 0 &&
            memcmp((const char *)old + table.keys[i].offset,
                   (const char *)new + table.keys[i].offset, table.keys[i].size) != 0)
            touched |= table.keys[i].touches;
    return touched;
}

unsigned config_touches(const Config *old, const Config *new) {
    return config_diff_touches(CONFIG_PROFD, old, new);
}

void config_keep_until_restart(const Config *old, Config *new) {
    ConfigTable table = config_table();

    for (size_t i = 0; i < table.n; i++)
        if (strcmp(table.keys[i].section, CONFIG_PROFD) == 0 &&
            table.keys[i].touches & CONFIG_TOUCHES_RESTART)
            memcpy((char *)new + table.keys[i].offset, (const char *)old + table.keys[i].offset,
                   table.keys[i].size);
}

ConfigFate config_session_fate(const SessionConfig *old, const SessionConfig *new) {
    bool was = old && old->enabled, is = new &&new->enabled;
    unsigned touched;

    if (!was || !is)
        return was ? CONFIG_REMOVED : is ? CONFIG_ADDED : CONFIG_KEPT;
    touched = config_diff_touches(CONFIG_SESSION, old, new);
    if (touched & CONFIG_TOUCHES_EVENTS)
        return CONFIG_REOPENED;
    return touched ? CONFIG_LIMITED : CONFIG_KEPT;
}

int config_diff(const Config *old, const Config *new, ConfigDiff fn, void *userdata) {
    int r = 0;

    for (uint32_t i = 0; r >= 0 && i < old->n_sessions; i++) {
        const SessionConfig *a = &old->sessions[i], *b = config_session(new, a->name);

        if (config_session_fate(a, b) == CONFIG_REMOVED)
            r = fn(userdata, CONFIG_REMOVED, a, b);
    }
    for (uint32_t i = 0; r >= 0 && i < new->n_sessions; i++) {
        const SessionConfig *b = &new->sessions[i], *a = config_session(old, b->name);
        ConfigFate fate = config_session_fate(a, b);

        if (fate != CONFIG_KEPT && fate != CONFIG_REMOVED)
            r = fn(userdata, fate, a, b);
    }
    return r < 0 ? r : 0;
}
