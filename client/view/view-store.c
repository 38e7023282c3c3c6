/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/view/view-store.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/macro.h"

/*
 * A recording that lies in a store has the symbols of its programs beside it, whether profd runs or
 * not: STORE/sessions/NAME/… and STORE/snapshots/… belong to STORE/binaries.
 */

static const char usual_binaries[] = "/var/lib/profd/binaries";

static bool view_store_is_readable(const char *folder) {
    return access(folder, R_OK | X_OK) == 0;
}

/* The folder of the store in which the recording lies; NULL: it lies in none that can be read. */
static char *view_store_of(const char *file) {
    static const char *const rooms[] = {"/sessions/", "/snapshots/"};
    char path[PATH_MAX], *folder = NULL;

    if (!realpath(file, path))
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(rooms); i++)
        for (char *at = path; (at = strstr(at, rooms[i])); at++) {
            free(folder);
            if (asprintf(&folder, "%.*s/binaries", (int)(at - path), path) < 0)
                return NULL;
            if (view_store_is_readable(folder))
                return folder;
        }
    free(folder);
    return NULL;
}

char *view_store_binaries(char **files) {
    char *found = NULL;

    for (; files && *files && !found; files++)
        found = view_store_of(*files);
    return found || !view_store_is_readable(usual_binaries) ? found : strdup(usual_binaries);
}
