/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config/config-near.h"

#include <ctype.h>
#include <string.h>

#include "config/config.h"

/*
 * Near names, by the letters that have to be put in, taken out or exchanged. One row of the usual
 * table is enough, and names are short.
 */

enum { NAME_MAX_LENGTH = 32, TYPOS_MAX = 2 };

static unsigned distance(const char *a, const char *b) {
    unsigned row[NAME_MAX_LENGTH + 1];
    size_t n = strlen(b);

    for (unsigned j = 0; j <= n; j++)
        row[j] = j;
    for (unsigned i = 1; a[i - 1]; i++) {
        unsigned diagonal = row[0];

        row[0] = i;
        for (unsigned j = 1; j <= n; j++) {
            bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
            unsigned changed = diagonal + (same ? 0 : 1), moved = MIN(row[j], row[j - 1]) + 1;

            diagonal = row[j];
            row[j] = MIN(changed, moved);
        }
    }
    return row[n];
}

const char *config_near_key(const char *section, const char *name) {
    const char *nearest = NULL;
    unsigned least = TYPOS_MAX + 1;
    size_t n;
    const ConfigKey *keys = config_keys(&n);

    if (strlen(name) > NAME_MAX_LENGTH)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        unsigned d = distance(name, keys[i].name);

        if (strcmp(keys[i].section, section) == 0 && d < least && d < strlen(keys[i].name)) {
            nearest = keys[i].name;
            least = d;
        }
    }
    return nearest;
}
