/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/reader/reader-private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/*
 * The folder of a recording by several threads. `data` is a whole perf.data, each data.N is a plain
 * run of records; other names are ignored.
 */

enum { PARTS_MAX = 65536, PART_NUMBER_MAX = 1000000000 };

/* The N of "data.N", written without leading zeros. */
static bool reader_folder_part_number(const char *name, uint32_t *ret) {
    uint32_t n = 0;

    if (strncmp(name, "data.", 5) != 0 || name[5] == '\0' || (name[5] == '0' && name[6] != '\0'))
        return false;
    for (const char *p = name + 5; *p; p++) {
        if (*p < '0' || *p > '9' || n >= PART_NUMBER_MAX / 10)
            return false;
        n = n * 10 + (uint32_t)(*p - '0');
    }
    *ret = n;
    return true;
}

static int reader_folder_compare_numbers(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

int folder_list(int fd, uint32_t **ret, size_t *ret_n) {
    _cleanup_closedir_ DIR *folder = NULL;
    _cleanup_free_ uint32_t *parts = NULL;
    _cleanup_close_ int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t n = 0, allocated = 0;

    if (copy < 0)
        return -errno;
    folder = fdopendir(copy);
    if (!folder)
        return -errno;
    (void)TAKE_FD(copy);
    for (const struct dirent *e; (e = readdir(folder));) {
        uint32_t number;

        if (!reader_folder_part_number(e->d_name, &number))
            continue;
        if (n >= PARTS_MAX)
            return -E2BIG;
        if (n == allocated) {
            uint32_t *grown = reallocarray(parts, MAX(allocated * 2, (size_t)16), sizeof(*parts));

            if (!grown)
                return -ENOMEM;
            parts = grown;
            allocated = MAX(allocated * 2, (size_t)16);
        }
        parts[n++] = number;
    }
    if (n > 0)
        qsort(parts, n, sizeof(*parts), reader_folder_compare_numbers);
    *ret = TAKE_PTR(parts);
    *ret_n = n;
    return 0;
}

int folder_open_part(int fd, uint32_t n) {
    _cleanup_close_ int part = -1;
    char name[32];
    struct stat st;

    snprintf(name, sizeof(name), "data.%u", n);
    part = openat(fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (part < 0)
        return -errno;
    if (fstat(part, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EBADMSG;
    return TAKE_FD(part);
}
