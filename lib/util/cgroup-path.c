/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/cgroup-path.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "util/macro.h"

/*
 * A path names a group from the root of the tree; a unit names it by the one part of the path that
 * has the unit's name. systemd puts `_` before a unit name that would collide with a kernel file of
 * the group. Names contain backslashes (`\x2d`), which are literal here.
 */

enum { SHORTEST_PART_OF_A_NAME = 3 };

static Bytes cgroup_path_without_slashes(const char *s, size_t n) {
    while (n > 0 && *s == '/') {
        s++;
        n--;
    }
    while (n > 0 && s[n - 1] == '/')
        n--;
    return (Bytes){.data = (const uint8_t *)s, .size = n};
}

static Bytes cgroup_path_trimmed(Bytes path) {
    return cgroup_path_without_slashes((const char *)path.data, path.size);
}

static bool cgroup_path_is_at_or_below(Bytes path, Bytes top) {
    return top.size == 0 || (path.size >= top.size && memcmp(path.data, top.data, top.size) == 0 &&
                             (path.size == top.size || path.data[top.size] == '/'));
}

static bool cgroup_path_is_glob(const char *s) {
    return strpbrk(s, "*?[") != NULL;
}

/* Adds a NUL; false: it is too long, or contains a NUL. */
static bool cgroup_path_copy_text(Bytes text, char ret[PATH_MAX]) {
    if (text.size >= PATH_MAX || memchr(text.data, '\0', text.size))
        return false;
    memcpy(ret, text.data, text.size);
    ret[text.size] = '\0';
    return true;
}

/* As many leading parts of the path as the pattern has. */
static Bytes cgroup_path_first_parts(Bytes path, Bytes pattern) {
    size_t parts = 1;

    for (size_t i = 0; i < pattern.size; i++)
        parts += pattern.data[i] == '/';
    for (size_t i = 0; i < path.size; i++)
        if (path.data[i] == '/' && --parts == 0)
            path.size = i;
    return path;
}

bool cgroup_path_matches(Bytes path, const char *pattern) {
    Bytes whole = cgroup_path_trimmed(path),
          wanted = cgroup_path_without_slashes(pattern, strlen(pattern));
    char text[PATH_MAX], glob[PATH_MAX];

    if (cgroup_path_is_at_or_below(whole, wanted))
        return true;
    return cgroup_path_is_glob(pattern) &&
           cgroup_path_copy_text(cgroup_path_first_parts(whole, wanted), text) &&
           cgroup_path_copy_text(wanted, glob) &&
           fnmatch(glob, text, FNM_NOESCAPE | FNM_PATHNAME) == 0;
}

/* The next part of a path from *at on; false: there is none. */
static bool cgroup_path_next_part(Bytes path, size_t *at, char ret[PATH_MAX]) {
    size_t from, n = 0;

    while (*at < path.size && path.data[*at] == '/')
        (*at)++;
    from = *at;
    while (from + n < path.size && path.data[from + n] != '/')
        n++;
    *at = from + n;
    return n > 0 && cgroup_path_copy_text((Bytes){.data = path.data + from, .size = n}, ret);
}

const char *cgroup_unit_suffix(const char *unit) {
    static const char *const types[] = {"service",   "slice", "scope", "socket", "mount", "swap",
                                        "automount", "timer", "path",  "target", "device"};
    const char *dot = strrchr(unit, '.');

    for (size_t i = 0; dot && i < ARRAY_SIZE(types); i++)
        if (strcmp(dot + 1, types[i]) == 0)
            return "";
    return cgroup_path_is_glob(unit) ? "" : ".service";
}

static bool cgroup_path_is_unit(const char *part, const char *unit, const char *suffix) {
    size_t n = strlen(unit);

    if (strncmp(part, unit, n) == 0 && strcmp(part + n, suffix) == 0)
        return true;
    return cgroup_path_is_glob(unit) && fnmatch(unit, part, FNM_NOESCAPE) == 0;
}

bool cgroup_unit_matches(Bytes path, const char *unit) {
    const char *suffix = cgroup_unit_suffix(unit);
    char part[PATH_MAX];

    for (size_t at = 0; *unit && cgroup_path_next_part(path, &at, part);)
        if (cgroup_path_is_unit(part, unit, suffix) ||
            (part[0] == '_' && cgroup_path_is_unit(part + 1, unit, suffix)))
            return true;
    return false;
}

/* Compares with `shop` for shop.service, or with a part of a long name. */
static unsigned cgroup_path_distance_of(const char *part, const char *name) {
    size_t n = strlen(name);
    unsigned distance;

    if (strcmp(part, name) == 0)
        return 0;
    if (strncmp(part, name, n) == 0 && part[n] == '.')
        return 1;
    distance = near_distance(part, name);
    if (distance < NEAR_FAR)
        return distance + 1;
    return n >= SHORTEST_PART_OF_A_NAME && strstr(part, name) ? NEAR_FAR - 1 : NEAR_FAR;
}

void cgroup_path_offer(NearNames *near, Bytes path, const char *wanted, bool by_unit) {
    Bytes whole = cgroup_path_trimmed(path),
          pattern = cgroup_path_without_slashes(wanted, strlen(wanted));
    const char *suffix = by_unit ? cgroup_unit_suffix(wanted) : "";
    char part[PATH_MAX], name[PATH_MAX], shown[NEAR_NAME_MAX];
    char *slash;

    if (pattern.size == 0 || cgroup_path_is_glob(wanted) ||
        pattern.size + strlen(suffix) >= sizeof(name) || !cgroup_path_copy_text(pattern, name))
        return;
    strcat(name, suffix);
    slash = strrchr(name, '/');
    for (size_t at = 0; cgroup_path_next_part(whole, &at, part);) {
        unsigned distance = cgroup_path_distance_of(part, slash ? slash + 1 : name);

        if (!by_unit && at + 1 < sizeof(shown))
            snprintf(shown, sizeof(shown), "/%.*s", (int)at, (const char *)whole.data);
        if (by_unit)
            near_offer(near, part, distance);
        else if (at + 1 < sizeof(shown))
            near_offer(near, shown, distance);
    }
}
