/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/event/event-parse.h"

/*
 * An event of a kernel module that is not loaded looks like one that does not exist. modules.dep
 * has a line for each installed module: its path below the folder, a colon, the modules that it
 * needs.
 */

enum { PATH_SIZE = 512 };

/* Module names have underscores where file names may have dashes. */
static bool event_module_is_same_name(const char *file, size_t n, Bytes name) {
    if (n != name.size)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((file[i] == '-' ? '_' : file[i]) != (name.data[i] == '-' ? '_' : name.data[i]))
            return false;
    return true;
}

static bool event_module_is_line_of(const char *line, Bytes name) {
    const char *end = line + strcspn(line, ":"), *file = line, *suffix;

    for (const char *at = line; at < end; at++)
        if (*at == '/')
            file = at + 1;
    suffix = strstr(file, ".ko");
    return suffix && suffix < end && event_module_is_same_name(file, (size_t)(suffix - file), name);
}

static bool event_module_is_loaded(const EventHost *host, Bytes name) {
    char path[PATH_SIZE];
    int n = snprintf(path, sizeof(path), "%s/module/%.*s", host->sysfs, (int)name.size,
                     (const char *)name.data);

    return n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0;
}

bool event_module_is_missing(const EventHost *host, Bytes name) {
    _cleanup_free_ char *line = NULL;
    bool found = false;
    size_t room = 0;
    FILE *f = host->modules && name.size > 0 ? fopen(host->modules, "re") : NULL;

    if (!f)
        return false;
    while (!found && getline(&line, &room, f) > 0)
        found = event_module_is_line_of(line, name);
    (void)fclose(f);
    return found && !event_module_is_loaded(host, name);
}
