/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "config/config-private.h"
#include "util/file.h"

/*
 * Finds the files of the configuration like systemd does: the main file is the first one that
 * exists; drop-ins are sorted by name over all folders, and a file in an earlier folder hides those
 * of the same name in later ones, a link to /dev/null included. Files are read completely, up to a
 * limit, so that they cannot change while they are parsed.
 */

#define MAIN_FILE "profd/profd.conf"

/* Earlier folders override later ones. */
static const char *const folders[] = {PROFD_SYSCONFDIR, "/run", "/usr/lib"};

typedef struct DropIns {
    char *paths[CONFIG_DROP_INS_MAX];
    size_t n, left_out;
} DropIns;

static void config_path_drop_ins_done(DropIns *d) {
    for (size_t i = 0; i < d->n; i++)
        free(d->paths[i]);
}

static int config_path_read_text(int fd, char **ret, size_t *ret_size) {
    _cleanup_free_ char *text = malloc(CONFIG_FILE_MAX + 1);
    size_t n = 0;
    ssize_t k;

    if (!text)
        return -ENOMEM;
    while ((k = read(fd, text + n, CONFIG_FILE_MAX + 1 - n)) != 0) {
        if (k < 0 && errno != EINTR)
            return -errno;
        n += (size_t)MAX(k, 0);
        if (n > CONFIG_FILE_MAX)
            return -EFBIG;
    }
    text[n] = '\0';
    *ret = TAKE_PTR(text);
    *ret_size = n;
    return 0;
}

/* Appends the file to those to load. */
static int config_path_add_file(ConfigLoad *load, const char *path) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    _cleanup_free_ char *name = strdup(path);
    ConfigFile *file = &load->files[load->n_files];
    struct stat st;
    int r = 0;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!name)
        return -ENOMEM;
    if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
        return 0;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    r = config_path_read_text(fd, &file->text, &file->size);
    if (r < 0)
        return r;
    file->path = TAKE_PTR(name);
    load->n_files++;
    return 0;
}

static const char *config_path_base_name(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool config_path_is_drop_in(const char *name) {
    size_t n = strlen(name);

    return name[0] != '.' && n > strlen(".conf") &&
           strcmp(name + n - strlen(".conf"), ".conf") == 0;
}

static int config_path_add_drop_in(DropIns *d, const char *folder, const char *name) {
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(config_path_base_name(d->paths[i]), name) == 0)
            return 0;
    if (d->n == CONFIG_DROP_INS_MAX) {
        d->left_out++;
        return 0;
    }
    if (asprintf(&d->paths[d->n], "%s/%s", folder, name) < 0)
        return -ENOMEM;
    d->n++;
    return 0;
}

static int config_path_list_drop_ins(ConfigLoad *load, DropIns *d, const char *folder) {
    _cleanup_closedir_ DIR *dir = opendir(folder);
    int r = 0;

    if (!dir) {
        if (errno != ENOENT && errno != ENOTDIR)
            config_report(load, folder, 0, "This folder cannot be read: %m");
        return 0;
    }
    for (struct dirent *e; r == 0 && (e = readdir(dir));)
        if (config_path_is_drop_in(e->d_name))
            r = config_path_add_drop_in(d, folder, e->d_name);
    return r;
}

static int config_path_compare(const void *a, const void *b) {
    return strcmp(config_path_base_name(*(char *const *)a),
                  config_path_base_name(*(char *const *)b));
}

static int config_path_add_drop_ins(ConfigLoad *load, DropIns *d) {
    if (d->left_out > 0)
        config_report(load, config_path_base_name(MAIN_FILE ".d"), 0,
                      "There are too many drop-ins, %zu were left out: there may be %d at most",
                      d->left_out, CONFIG_DROP_INS_MAX);
    qsort(d->paths, d->n, sizeof(d->paths[0]), config_path_compare);
    for (size_t i = 0; i < d->n; i++) {
        int r = config_path_add_file(load, d->paths[i]);

        if (r == -ENOMEM)
            return r;
        if (r < 0)
            config_report(load, d->paths[i], 0, "This drop-in cannot be read: %s", strerror(-r));
    }
    return 0;
}

static int config_path_find_given(ConfigLoad *load, const char *path) {
    _cleanup_(config_path_drop_ins_done) DropIns drop_ins = {};
    _cleanup_free_ char *folder = NULL;
    int r = config_path_add_file(load, path);

    if (r < 0)
        return r;
    if (asprintf(&folder, "%s.d", path) < 0)
        return -ENOMEM;
    r = config_path_list_drop_ins(load, &drop_ins, folder);
    return r < 0 ? r : config_path_add_drop_ins(load, &drop_ins);
}

static int config_path_add_main_file(ConfigLoad *load, const char *root) {
    int r = -ENOENT;

    for (size_t i = 0; r == -ENOENT && i < ARRAY_SIZE(folders); i++) {
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s%s/" MAIN_FILE, root, folders[i]) < 0)
            return -ENOMEM;
        r = config_path_add_file(load, path);
        /* A user who may not read the system's file still gets the defaults. */
        if (r == -EACCES) {
            config_report(load, path, 0, "This file cannot be read: %s", strerror(-r));
            r = -ENOENT;
        }
    }
    return r == -ENOENT ? 0 : r;
}

int config_find(ConfigLoad *load, const char *root, const char *path) {
    _cleanup_(config_path_drop_ins_done) DropIns drop_ins = {};
    int r;

    if (path)
        return config_path_find_given(load, path);
    r = config_path_add_main_file(load, root);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(folders); i++) {
        _cleanup_free_ char *folder = NULL;

        if (asprintf(&folder, "%s%s/" MAIN_FILE ".d", root, folders[i]) < 0)
            return -ENOMEM;
        r = config_path_list_drop_ins(load, &drop_ins, folder);
    }
    return r < 0 ? r : config_path_add_drop_ins(load, &drop_ins);
}
