/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config/config-table.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/near.h"

/*
 * Looks for keys in a table. For a name that no key has there is the key whose name is nearest, so
 * that the complaint about a typo can name it.
 */

const ConfigKey *config_table_find(ConfigTable table, const char *section, const char *name) {
    for (size_t i = 0; i < table.n; i++)
        if (strcmp(table.keys[i].section, section) == 0 && strcmp(table.keys[i].name, name) == 0)
            return &table.keys[i];
    return NULL;
}

const char *config_table_near(ConfigTable table, const char *section, const char *name) {
    const char *nearest = NULL;
    unsigned least = NEAR_FAR;

    for (size_t i = 0; i < table.n; i++) {
        unsigned d = near_distance(name, table.keys[i].name);

        if (strcmp(table.keys[i].section, section) == 0 && d < least) {
            nearest = table.keys[i].name;
            least = d;
        }
    }
    return nearest;
}

void config_table_defaults(ConfigTable table, const char *section, void *base) {
    for (size_t i = 0; i < table.n; i++) {
        const ConfigKey *key = &table.keys[i];
        int r = strcmp(key->section, section) == 0 ? key->parse(key, key->fallback, base) : 0;

        assert(r == 0);
        (void)r;
    }
}

void config_table_refuse(const ConfigPlace *place, const ConfigKey *key, const char *value,
                         int error) {
    config_report_at(place, "%s=%s is %s: it takes %s", key->name, key->is_secret ? "" : value,
                     error == -ERANGE ? "out of range" : "not understood", key->expected);
}

void config_table_print(ConfigTable table) {
    for (size_t i = 0; i < table.n; i++)
        printf("%s\t%s\t%s\t%s\n", table.keys[i].section, table.keys[i].name,
               table.keys[i].fallback, table.keys[i].expected);
}
