/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/doctor/doctor-check.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/file.h"
#include "util/parse.h"

/* Reads files of the host for the checks, relative to the root that --root may set. */

bool doctor_mount(const Doctor *d, const char *type, char *ret, size_t size) {
    _cleanup_free_ char *line = NULL;
    char path[PATH_MAX], where[256], what[64];
    bool found = false;
    size_t room = 0;
    FILE *f =
        doctor_path(d, "/proc/self/mounts", path, sizeof(path)) < 0 ? NULL : fopen(path, "re");

    while (f && !found && getline(&line, &room, f) > 0)
        found = sscanf(line, "%*s %255s %63s", where, what) == 2 && strcmp(what, type) == 0;
    if (f)
        (void)fclose(f);
    if (found)
        (void)snprintf(ret, size, "%s", where);
    return found;
}

int doctor_path(const Doctor *d, const char *path, char *ret, size_t size) {
    int n = snprintf(ret, size, "%s%s", d->root, path);

    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int doctor_read(const Doctor *d, const char *path, char *ret, size_t size) {
    char full[PATH_MAX];
    int r = doctor_path(d, path, full, sizeof(full));

    return r < 0 ? r : file_read_text(full, ret, size);
}

int doctor_read_number(const Doctor *d, const char *path, int64_t *ret) {
    char text[32];
    uint64_t v;
    bool negative;
    int r = doctor_read(d, path, text, sizeof(text));

    if (r < 0)
        return r;
    negative = text[0] == '-';
    r = parse_u64(text + negative, &v);
    if (r < 0)
        return r;
    if (v > INT64_MAX)
        return -ERANGE;
    *ret = negative ? -(int64_t)v : (int64_t)v;
    return 0;
}

bool doctor_exists(const Doctor *d, const char *path) {
    char full[PATH_MAX];

    return doctor_path(d, path, full, sizeof(full)) == 0 && access(full, F_OK) == 0;
}

unsigned doctor_cpus(const Doctor *d) {
    OptionNumbers cpus = {};
    char text[512];
    uint64_t n = 0;

    if (doctor_read(d, "/sys/devices/system/cpu/online", text, sizeof(text)) > 0 &&
        option_numbers(NULL, text, &cpus) == 0)
        for (size_t i = 0; i < cpus.n; i++)
            n += cpus.items[i].last - cpus.items[i].first + 1ULL;
    option_numbers_done(&cpus);
    return n == 0 ? 1 : (unsigned)MIN(n, (uint64_t)65536);
}
