/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tracker/cgroup-name.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "util/cgroup.h"
#include "util/macro.h"
#include "util/text.h"

/*
 * In a cgroup namespace (a container), paths in /proc and in the mount begin at the root of the
 * namespace; only the kernel's records of new groups begin at the root of the host. A process in
 * the namespace cannot ask where it begins. The first record of a group below our mount shows it:
 * the id proves that it is the same group, and the part of the record's path before its path below
 * the mount is the path of the namespace. From then on this prefix is removed. A group outside of
 * the namespace is written as the kernel does, with `..` up to the common part.
 */

enum { INITIAL_NAMESPACE = 0xeffffffb /* PROC_CGROUP_INIT_INO */, DEPTH_MAX = 64 };

struct CgroupNames {
    int fd; /* of our mount; -1: no prefix is removed, or it is known already */
    bool has_prefix;
    char prefix[PATH_MAX];
    Buffer spelled;
};

bool cgroup_names_is_initial(void) {
    struct stat st;

    return stat("/proc/self/ns/cgroup", &st) < 0 || st.st_ino == (ino_t)INITIAL_NAMESPACE;
}

int cgroup_names_new(const char *root, bool is_initial, CgroupNames **ret) {
    _cleanup_free_ CgroupTree *tree = malloc(sizeof(*tree));
    CgroupNames *names = calloc(1, sizeof(*names));
    char path[PATH_MAX];

    if (!tree || !names) {
        free(names);
        return -ENOMEM;
    }
    names->fd = -1;
    /* If only a part of the tree is mounted, its position in the tree is known. */
    if (!is_initial && cgroup_tree_find(root, tree) == 0 && !tree->top[0] &&
        snprintf(path, sizeof(path), "%s%s", root, tree->mount) < (int)sizeof(path))
        names->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    *ret = names;
    return 0;
}

CgroupNames *cgroup_names_free(CgroupNames *names) {
    if (!names)
        return NULL;
    closep(&names->fd);
    buffer_done(&names->spelled);
    free(names);
    return NULL;
}

static bool cgroup_name_is_group(int fd, const char *path, uint64_t id) {
    struct stat st;

    while (*path == '/')
        path++;
    return fstatat(fd, path, &st, *path ? AT_SYMLINK_NOFOLLOW : AT_EMPTY_PATH) == 0 &&
           S_ISDIR(st.st_mode) && st.st_ino == id;
}

/* Finds the suffix of the path that leads to the group below our mount. */
static void cgroup_name_learn(CgroupNames *names, uint64_t id, const char *path) {
    const char *end = path;

    for (unsigned i = 0; end && i <= DEPTH_MAX; i++) {
        if (cgroup_name_is_group(names->fd, end, id)) {
            memcpy(names->prefix, path, (size_t)(end - path));
            names->prefix[end - path] = '\0';
            names->has_prefix = names->prefix[0] != '\0';
            closep(&names->fd);
            return;
        }
        end = *end ? strchr(end + 1, '/') ?: end + strlen(end) : NULL;
    }
}

/* The length of the common prefix in whole path components. */
static size_t cgroup_name_common_length(const char *a, const char *b) {
    size_t common = 0;

    for (size_t i = 0;; i++) {
        bool ends = (a[i] == '/' || !a[i]) && (b[i] == '/' || !b[i]);

        common = ends ? i : common;
        if (!a[i] || a[i] != b[i])
            return common;
    }
}

Bytes cgroup_names_spell(CgroupNames *names, uint64_t id, Bytes path) {
    char text[PATH_MAX];
    size_t common;

    if ((names->fd < 0 && !names->has_prefix) || path.size >= sizeof(text) || path.size == 0 ||
        path.data[0] != '/' || memchr(path.data, '\0', path.size))
        return path;
    memcpy(text, path.data, path.size);
    text[path.size] = '\0';
    if (names->fd >= 0)
        cgroup_name_learn(names, id, text);
    if (!names->has_prefix)
        return path;
    buffer_clear(&names->spelled);
    common = cgroup_name_common_length(names->prefix, text);
    for (const char *at = names->prefix + common; *at; at++)
        if (*at == '/')
            text_puts(&names->spelled, "/..");
    if (strcmp(text + common, "/") != 0)
        text_puts(&names->spelled, text + common);
    if (names->spelled.size == 0)
        text_putc(&names->spelled, '/');
    return buffer_error(&names->spelled) < 0 ? path : buffer_bytes(&names->spelled);
}
