/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/event/event-parse.h"
#include "util/array.h"

/*
 * Names of what the kernel shows as folders: PMUs, their events and terms, tracepoints and their
 * systems. The kernel sets no limit, so names beyond a generous one are skipped.
 */

enum { NAMES_MAX = 8192 };

void event_names_free(char **names) {
    for (size_t i = 0; names && names[i]; i++)
        free(names[i]);
    free(names);
}

static int event_names_compare(const void *a, const void *b, void *compare) {
    int (**by)(const char *, const char *) = compare;

    return (*by)(*(char *const *)a, *(char *const *)b);
}

int event_names_read(DIR *dir, bool (*is_wanted)(const struct dirent *entry, const void *userdata),
                     const void *userdata, int (*compare)(const char *a, const char *b),
                     char ***ret) {
    /* One more element ends the names. */
    char **names = calloc(1, sizeof(*names)), **slot;
    const struct dirent *entry;
    size_t n = 1;
    int r = names ? 0 : -ENOMEM;

    while (r == 0 && n < NAMES_MAX && (entry = readdir(dir))) {
        if (!is_wanted(entry, userdata))
            continue;
        slot = array_grow(&names, &n);
        if (slot)
            names[n - 2] = strdup(entry->d_name);
        r = slot && names[n - 2] ? 0 : -ENOMEM;
    }
    (void)closedir(dir);
    if (r < 0) {
        event_names_free(names);
        return r;
    }
    qsort_r(names, n - 1, sizeof(*names), event_names_compare, &compare);
    *ret = names;
    return 0;
}

/* Matches a character with one place of the pattern and returns where the next place begins. */
static bool event_names_match_one(const char *pattern, char c, const char **ret_next) {
    const char *p = pattern + 1;
    bool matches = false;

    if (*pattern != '[') {
        *ret_next = p;
        return *pattern == '?' || *pattern == c;
    }
    for (; *p && *p != ']'; p++) {
        if (p[1] == '-' && p[2] && p[2] != ']') {
            matches |= p[0] <= c && c <= p[2];
            p += 2;
        } else
            matches |= *p == c;
    }
    *ret_next = p + (*p == ']');
    return matches;
}

bool event_glob(const char *pattern, const char *name) {
    const char *star = NULL, *resume = NULL, *next;

    while (*name) {
        if (*pattern == '*') {
            star = ++pattern;
            resume = name;
        } else if (*pattern && event_names_match_one(pattern, *name, &next)) {
            pattern = next;
            name++;
        } else if (star) {
            pattern = star;
            name = ++resume;
        } else
            return false;
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}
