/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/cgroup-scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "util/bytes.h"
#include "util/cgroup.h"
#include "util/macro.h"

/*
 * Walks the tree that perf events use, wherever it is mounted, folder by folder and never through a
 * link. The id of a cgroup is in the file handle of its folder. A user to whom a subtree was
 * delegated may nest it deeply and use any names, so depth and number are bounded; cgroups beyond
 * the bounds are left out.
 */

typedef struct Walk {
    CgroupCallback callback;
    void *userdata;
    size_t n;
    size_t size; /* of path */
    char path[PATH_MAX];
} Walk;

/* Opens the mount, and begins the path with the position of its root in the tree. */
static int cgroup_scan_open_tree(const char *root, Walk *walk) {
    _cleanup_free_ CgroupTree *tree = malloc(sizeof(*tree));
    char path[PATH_MAX];
    int r, fd;

    if (!tree)
        return -ENOMEM;
    r = cgroup_tree_find(root, tree);
    if (r < 0)
        return r;
    walk->size = (size_t)snprintf(walk->path, sizeof(walk->path), "%s", tree->top);
    if (walk->size >= sizeof(walk->path) ||
        snprintf(path, sizeof(path), "%s%s", root, tree->mount) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int cgroup_scan_id_of(int fd, uint64_t *ret) {
    struct {
        struct file_handle handle;
        unsigned char bytes[MAX_HANDLE_SZ];
    } of = {.handle.handle_bytes = MAX_HANDLE_SZ};
    struct stat st;
    int mount;

    if (name_to_handle_at(fd, "", &of.handle, &mount, AT_EMPTY_PATH) == 0 &&
        of.handle.handle_bytes == sizeof(*ret)) {
        memcpy(ret, of.handle.f_handle, sizeof(*ret));
        return 0;
    }
    if (fstat(fd, &st) < 0)
        return -errno;
    *ret = st.st_ino;
    return 0;
}

static int cgroup_scan_visit(Walk *walk, int fd, unsigned depth);

/* Skips a child that is gone or that we may not read. */
static int cgroup_scan_visit_child(Walk *walk, int folder, const char *name, unsigned depth) {
    size_t size = walk->size, n = strlen(name);
    int fd, r;

    if (size + n + 1 >= sizeof(walk->path))
        return 0;
    fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return 0;
    walk->path[size] = '/';
    memcpy(walk->path + size + 1, name, n + 1);
    walk->size = size + 1 + n;
    r = cgroup_scan_visit(walk, fd, depth + 1);
    walk->size = size;
    walk->path[size] = '\0';
    return r;
}

static bool cgroup_scan_is_child(const struct dirent *e) {
    return (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN) && strcmp(e->d_name, ".") != 0 &&
           strcmp(e->d_name, "..") != 0;
}

/* Takes ownership of the descriptor. */
static int cgroup_scan_visit(Walk *walk, int fd, unsigned depth) {
    _cleanup_closedir_ DIR *dir = fdopendir(fd);
    uint64_t id;
    int r;

    if (!dir) {
        r = -errno;
        (void)close(fd);
        return r;
    }
    r = cgroup_scan_id_of(fd, &id);
    if (r == 0)
        r = walk->callback(walk->userdata, id, walk->size > 0 ? walk->path : "/");
    walk->n++;
    if (depth >= CGROUP_DEPTH_MAX)
        return r;
    for (struct dirent *e; r >= 0 && walk->n < CGROUPS_MAX && (e = readdir(dir));)
        if (cgroup_scan_is_child(e))
            r = cgroup_scan_visit_child(walk, dirfd(dir), e->d_name, depth);
    return r < 0 ? r : 0;
}

int cgroup_walk(const char *root, CgroupCallback callback, void *userdata) {
    Walk walk = {.callback = callback, .userdata = userdata};
    int fd = cgroup_scan_open_tree(root, &walk);

    return fd < 0 ? fd : cgroup_scan_visit(&walk, fd, 0);
}
