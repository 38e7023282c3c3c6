/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The root of a machine that a test makes up: files of /proc and /sys in a private folder. */

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/file.h"

static char root[] = "/tmp/profd-test-root-XXXXXX";

static inline void begin_root(void) {
    strcpy(root + sizeof(root) - sizeof("XXXXXX"), "XXXXXX");
    if (!mkdtemp(root))
        abort();
}

static inline int remove_entry(const char *path, const struct stat *st _unused_, int flag _unused_,
                               struct FTW *ftw _unused_) {
    return remove(path);
}

static inline void end_root(void) {
    if (nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS) < 0)
        abort();
}

static inline void put_folder(const char *path) {
    char full[8192];

    snprintf(full, sizeof(full), "%s%s", root, path);
    if (file_make_folders(full, 0700) < 0)
        abort();
}

/* The folders above it are made. */
static inline void put_bytes(const char *path, const void *data, size_t n) {
    char full[512], *slash;
    int fd;

    snprintf(full, sizeof(full), "%s%s", root, path);
    slash = strrchr(full, '/');
    *slash = '\0';
    if (file_make_folders(full, 0700) < 0)
        abort();
    *slash = '/';
    fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, n) != (ssize_t)n)
        abort();
    close(fd);
}

static inline void put(const char *path, const char *text) {
    put_bytes(path, text, strlen(text));
}
