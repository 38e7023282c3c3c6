/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config/config-file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/*
 * Finds the files of the configuration like systemd does: the main file is the first one that
 * exists; drop-ins are sorted by name over all folders, and a file in an earlier folder hides those
 * of the same name in later ones, a link to /dev/null included. Files are read completely, up to a
 * limit, so that they cannot change while they are parsed.
 */

enum { PROBLEM_MAX = 512 };

/* Earlier folders override later ones. */
static const char *const folders[] = {PROFD_SYSCONFDIR, "/run", "/usr/lib"};

typedef struct DropIns {
    char *paths[CONFIG_DROP_INS_MAX];
    size_t n, left_out;
} DropIns;

static void config_file_drop_ins_done(DropIns *d) {
    for (size_t i = 0; i < d->n; i++)
        free(d->paths[i]);
}

static int config_file_read_text(int fd, char **ret, size_t *ret_size) {
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
static int config_file_add(ConfigFiles *files, const char *path) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    _cleanup_free_ char *name = strdup(path);
    ConfigFile *file = &files->list[files->n];
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
    r = config_file_read_text(fd, &file->text, &file->size);
    if (r < 0)
        return r;
    file->path = TAKE_PTR(name);
    files->n++;
    return 0;
}

static const char *config_file_base_name(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool config_file_is_drop_in(const char *name) {
    size_t n = strlen(name);

    return name[0] != '.' && n > strlen(".conf") &&
           strcmp(name + n - strlen(".conf"), ".conf") == 0;
}

static int config_file_add_drop_in(DropIns *d, const char *folder, const char *name) {
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(config_file_base_name(d->paths[i]), name) == 0)
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

static int config_file_list_drop_ins(ConfigFiles *files, DropIns *d, const char *folder) {
    _cleanup_closedir_ DIR *dir = opendir(folder);
    int r = 0;

    if (!dir) {
        if (errno != ENOENT && errno != ENOTDIR)
            config_report(files, folder, 0, "This folder cannot be read: %m");
        return 0;
    }
    for (struct dirent *e; r == 0 && (e = readdir(dir));)
        if (config_file_is_drop_in(e->d_name))
            r = config_file_add_drop_in(d, folder, e->d_name);
    return r;
}

static int config_file_compare(const void *a, const void *b) {
    return strcmp(config_file_base_name(*(char *const *)a),
                  config_file_base_name(*(char *const *)b));
}

static int config_file_add_drop_ins(ConfigFiles *files, DropIns *d, const char *name) {
    if (d->left_out > 0)
        config_report(files, config_file_base_name(name), 0,
                      "There are too many drop-ins, %zu were left out: there may be %d at most",
                      d->left_out, CONFIG_DROP_INS_MAX);
    qsort(d->paths, d->n, sizeof(d->paths[0]), config_file_compare);
    for (size_t i = 0; i < d->n; i++) {
        int r = config_file_add(files, d->paths[i]);

        if (r == -ENOMEM)
            return r;
        if (r < 0)
            config_report(files, d->paths[i], 0, "This drop-in cannot be read: %s", strerror(-r));
    }
    return 0;
}

static int config_file_find_given(ConfigFiles *files, const char *path) {
    _cleanup_(config_file_drop_ins_done) DropIns drop_ins = {};
    _cleanup_free_ char *folder = NULL;
    int r = config_file_add(files, path);

    if (r < 0)
        return r;
    if (asprintf(&folder, "%s.d", path) < 0)
        return -ENOMEM;
    r = config_file_list_drop_ins(files, &drop_ins, folder);
    return r < 0 ? r : config_file_add_drop_ins(files, &drop_ins, folder);
}

static int config_file_add_main(ConfigFiles *files, const char *root, const char *name) {
    int r = -ENOENT;

    for (size_t i = 0; r == -ENOENT && i < ARRAY_SIZE(folders); i++) {
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s%s/%s", root, folders[i], name) < 0)
            return -ENOMEM;
        r = config_file_add(files, path);
        /* A user who may not read the system's file still gets the defaults. */
        if (r == -EACCES) {
            config_report(files, path, 0, "This file cannot be read: %s", strerror(-r));
            r = -ENOENT;
        }
    }
    return r == -ENOENT ? 0 : r;
}

int config_files_find(ConfigFiles *files, const char *root, const char *name, const char *path) {
    _cleanup_(config_file_drop_ins_done) DropIns drop_ins = {};
    _cleanup_free_ char *folder = NULL;
    int r;

    if (path)
        return config_file_find_given(files, path);
    r = config_file_add_main(files, root, name);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(folders); i++) {
        freep(&folder);
        if (asprintf(&folder, "%s%s/%s.d", root, folders[i], name) < 0) {
            folder = NULL;
            return -ENOMEM;
        }
        r = config_file_list_drop_ins(files, &drop_ins, folder);
    }
    return r < 0 ? r : config_file_add_drop_ins(files, &drop_ins, folder);
}

void config_files_done(ConfigFiles *files) {
    for (size_t i = 0; i < files->n; i++) {
        free(files->list[i].path);
        free(files->list[i].text);
    }
    files->n = 0;
}

void config_report(ConfigFiles *files, const char *path, unsigned line, const char *format, ...) {
    char problem[PROBLEM_MAX];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(problem, sizeof(problem), format, ap);
    va_end(ap);
    files->problems++;
    if (files->on_problem)
        files->on_problem(files->userdata, path, line, problem);
}
