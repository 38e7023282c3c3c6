/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/macro.h"

/*
 * The controller perf_event belongs to cgroup2 until somebody mounts a version 1 hierarchy with it,
 * as systemd does in its legacy and hybrid modes. Then the kernel reports ids and paths of that
 * hierarchy, and accepts no group of cgroup2 for an event. Ids differ between the two, so the wrong
 * tree would give wrong names.
 */

enum { LINE_MAX_BYTES = 16384 };

/* "ID PARENT MAJ:MIN ROOT MOUNT OPTIONS [OPTIONAL…] - TYPE SOURCE OPTIONS" */
typedef struct Mount {
    char *top, *where, *type, *options;
} Mount;

static bool cgroup_parse_mount(char *line, Mount *ret) {
    char *field[5], *rest = line, *end = strstr(line, " - ");

    if (!end)
        return false;
    *end = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(field); i++)
        if (!(field[i] = strsep(&rest, " ")))
            return false;
    rest = end + 3;
    *ret = (Mount){.top = field[3], .where = field[4], .type = strsep(&rest, " ")};
    (void)strsep(&rest, " ");
    ret->options = rest ?: "";
    return ret->where[0] == '/' && ret->top[0] == '/';
}

static bool cgroup_has_option(const char *options, const char *name) {
    size_t n = strlen(name);

    for (const char *at = options; at && *at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == '\0' || at[n] == '\n'))
            return true;
    }
    return false;
}

static bool cgroup_is_octal(char c) {
    return c >= '0' && c <= '7';
}

/* The kernel escapes blanks and backslashes in a path as \040 and the like. */
static void cgroup_unescape(char *path) {
    char *to = path;

    for (const char *from = path; *from; to++)
        if (from[0] == '\\' && cgroup_is_octal(from[1]) && cgroup_is_octal(from[2]) &&
            cgroup_is_octal(from[3])) {
            *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
            from += 4;
        } else
            *to = *from++;
    *to = '\0';
}

static bool cgroup_take(const Mount *mount, unsigned version, CgroupTree *ret) {
    cgroup_unescape(mount->where);
    cgroup_unescape(mount->top);
    /* In another namespace the true path is not available. */
    if (mount->top[1] == '\0' || strncmp(mount->top, "/..", 3) == 0)
        mount->top[0] = '\0';
    if (strlen(mount->where) >= sizeof(ret->mount) || strlen(mount->top) >= sizeof(ret->top))
        return false;
    strcpy(ret->mount, mount->where);
    strcpy(ret->top, mount->top);
    ret->version = version;
    return true;
}

static FILE *cgroup_open_below(const char *root, const char *path) {
    char full[CGROUP_TREE_PATH_MAX];

    if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int)sizeof(full)) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    return fopen(full, "re");
}

/* Parses "perf_event\tHIERARCHY\t…": 0 means cgroup2. Its mount may be invisible to us. */
static bool cgroup_is_elsewhere(const char *root) {
    unsigned hierarchy = 0;
    char line[256];
    FILE *f = cgroup_open_below(root, "/proc/cgroups");

    while (f && hierarchy == 0 && fgets(line, sizeof(line), f))
        (void)sscanf(line, "perf_event %u", &hierarchy);
    if (f)
        (void)fclose(f);
    return hierarchy != 0;
}

static bool cgroup_skip_rest(char *line, FILE *f) {
    bool is_whole = strchr(line, '\n') || feof(f);

    while (!strchr(line, '\n') && fgets(line, LINE_MAX_BYTES, f))
        ;
    return is_whole;
}

int cgroup_tree_find(const char *root, CgroupTree *ret) {
    _cleanup_free_ char *line = malloc(LINE_MAX_BYTES);
    _cleanup_free_ CgroupTree *found = calloc(1, sizeof(*found));
    FILE *f;
    Mount mount;

    if (!line || !found)
        return -ENOMEM;
    f = cgroup_open_below(root, "/proc/self/mountinfo");
    if (!f)
        return -errno;
    while (found->version != 1 && fgets(line, LINE_MAX_BYTES, f)) {
        if (!cgroup_skip_rest(line, f) || !cgroup_parse_mount(line, &mount))
            continue;
        if (strcmp(mount.type, "cgroup") == 0 && cgroup_has_option(mount.options, "perf_event"))
            (void)cgroup_take(&mount, 1, found);
        else if (strcmp(mount.type, "cgroup2") == 0 && found->version == 0)
            (void)cgroup_take(&mount, 2, found);
    }
    (void)fclose(f);
    if (found->version == 0 || (found->version == 2 && cgroup_is_elsewhere(root)))
        return -ENOENT;
    *ret = *found;
    return 0;
}

const char *cgroup_below_mount(const CgroupTree *tree, const char *cgroup) {
    size_t n = strlen(tree->top);

    if (n < 2 || strncmp(cgroup, tree->top + 1, n - 1) != 0 || cgroup[n - 1] != '/')
        return NULL;
    return cgroup + n;
}
