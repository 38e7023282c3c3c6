/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config/config-near.h"

#include <string.h>

#include "config/config.h"
#include "util/near.h"

/*
 * Finds the key of the same section whose name is most similar to an unknown one, so that the
 * message about a typo can suggest it.
 */

const char *config_near_key(const char *section, const char *name) {
    const char *nearest = NULL;
    unsigned least = NEAR_FAR;
    size_t n;
    const ConfigKey *keys = config_keys(&n);

    for (size_t i = 0; i < n; i++) {
        unsigned d = near_distance(name, keys[i].name);

        if (strcmp(keys[i].section, section) == 0 && d < least) {
            nearest = keys[i].name;
            least = d;
        }
    }
    return nearest;
}
