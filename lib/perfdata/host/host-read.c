/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/host/host-read.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/file.h"

/*
 * Small readers for files of the host. They trust no file: its content is complete and valid, or
 * they fail.
 */

_printf_(3, 0) static int format_path(const Host *host, char ret[PATH_MAX], const char *format,
                                      va_list ap) {
    int n = snprintf(ret, PATH_MAX, "%s", host->root), k;

    if (n < 0 || n >= PATH_MAX)
        return -ENAMETOOLONG;
    k = vsnprintf(ret + n, (size_t)(PATH_MAX - n), format, ap);
    return k < 0 || k >= PATH_MAX - n ? -ENAMETOOLONG : 0;
}

_printf_(3, 0) static int read_text(const Host *host, char ret[HOST_TEXT_SIZE], const char *format,
                                    va_list ap) {
    char path[PATH_MAX];
    int r = format_path(host, path, format, ap);

    if (r == 0)
        r = file_read_text(path, ret, HOST_TEXT_SIZE);
    return r < 0 ? r : 0;
}

int host_text(const Host *host, char ret[HOST_TEXT_SIZE], const char *format, ...) {
    va_list ap;
    int r;

    va_start(ap, format);
    r = read_text(host, ret, format, ap);
    va_end(ap);
    return r;
}

int host_string(const Host *host, char **ret, const char *format, ...) {
    char text[HOST_TEXT_SIZE], *s;
    va_list ap;
    int r;

    va_start(ap, format);
    r = read_text(host, text, format, ap);
    va_end(ap);
    if (r < 0)
        return r;
    s = strdup(text);
    if (!s)
        return -ENOMEM;
    *ret = s;
    return 0;
}

static int host_read_parse_number(const char *text, unsigned base, uint64_t *ret) {
    char *end;
    uint64_t v;

    errno = 0;
    v = strtoull(text, &end, (int)base);
    if (end == text || errno != 0)
        return -EINVAL;
    *ret = v;
    return 0;
}

int host_u64(const Host *host, uint64_t *ret, unsigned base, const char *format, ...) {
    char text[HOST_TEXT_SIZE];
    va_list ap;
    int r;

    va_start(ap, format);
    r = read_text(host, text, format, ap);
    va_end(ap);
    return r < 0 ? r : host_read_parse_number(text, base, ret);
}

/* Ids may be -1, which becomes all ones. */
int host_u32(const Host *host, uint32_t *ret, const char *format, ...) {
    char text[HOST_TEXT_SIZE];
    uint64_t v = 0;
    va_list ap;
    int r;

    va_start(ap, format);
    r = read_text(host, text, format, ap);
    va_end(ap);
    if (r == 0)
        r = host_read_parse_number(text, 10, &v);
    if (r < 0)
        return r;
    if ((int64_t)v < INT32_MIN || (int64_t)v > UINT32_MAX)
        return -ERANGE;
    *ret = (uint32_t)v;
    return 0;
}

int host_ids(const Host *host, HostIds *ret, const char *format, ...) {
    char text[HOST_TEXT_SIZE];
    va_list ap;
    int r;

    va_start(ap, format);
    r = read_text(host, text, format, ap);
    va_end(ap);
    return r < 0 ? r : host_parse_ids(text, ret);
}

static int host_read_parse_id(const char **p, uint32_t *ret) {
    uint32_t v = 0;

    if (!isdigit((unsigned char)**p))
        return -EINVAL;
    for (; isdigit((unsigned char)**p); ++*p) {
        v = v * 10 + (uint32_t)(**p - '0');
        if (v >= HOST_IDS_MAX)
            return -ERANGE;
    }
    *ret = v;
    return 0;
}

int host_parse_ids(const char *text, HostIds *ret) {
    HostIds ids = {};
    const char *p = text;

    while (*p && *p != '\n') {
        uint32_t from = 0, to = 0;
        int r = host_read_parse_id(&p, &from);

        to = from;
        if (r == 0 && *p == '-') {
            p++;
            r = host_read_parse_id(&p, &to);
        }
        if (r < 0)
            return r;
        if (to < from || (*p && *p != ',' && *p != '\n'))
            return -EINVAL;
        for (uint32_t i = from; i <= to; i++) {
            ids.n += !(ids.bits[i / 64] >> i % 64 & 1);
            ids.bits[i / 64] |= 1ULL << i % 64;
        }
        ids.end = MAX(ids.end, to + 1);
        p += *p == ',';
    }
    *ret = ids;
    return 0;
}

static inline void host_read_fclosep(FILE **f) {
    if (*f)
        (void)fclose(*f);
}

/* Parses "key", white space and a colon; returns the text after one space, or NULL. */
static const char *host_read_field_of(const char *line, const char *key) {
    size_t n = strlen(key);

    if (strncmp(line, key, n) != 0)
        return NULL;
    line += n;
    line += strspn(line, " \t");
    if (*line != ':')
        return NULL;
    line++;
    return *line == ' ' ? line + 1 : line;
}

int host_field(const Host *host, const char *path, const char *key, char ret[HOST_TEXT_SIZE]) {
    char name[PATH_MAX], line[HOST_TEXT_SIZE];
    _cleanup_(host_read_fclosep) FILE *f = NULL;
    int n = snprintf(name, sizeof(name), "%s%s", host->root, path);

    if (n < 0 || (size_t)n >= sizeof(name))
        return -ENAMETOOLONG;
    f = fopen(name, "re");
    if (!f)
        return -errno;
    while (fgets(line, sizeof(line), f)) {
        const char *value = host_read_field_of(line, key);

        if (!value)
            continue;
        line[strcspn(line, "\n")] = '\0';
        memcpy(ret, value, strlen(value) + 1);
        return 0;
    }
    return -ENODATA;
}

DIR *host_folder(const Host *host, const char *format, ...) {
    char path[PATH_MAX];
    va_list ap;
    int r;

    va_start(ap, format);
    r = format_path(host, path, format, ap);
    va_end(ap);
    return r < 0 ? NULL : opendir(path);
}

const char *host_next_name(DIR *dir, size_t *left) {
    struct dirent *entry;

    while (*left > 0 && (entry = readdir(dir))) {
        --*left;
        if (entry->d_name[0] != '.')
            return entry->d_name;
    }
    return NULL;
}

bool host_numbered(const char *name, const char *prefix, uint32_t *ret) {
    size_t n = strlen(prefix), digits;
    uint64_t v = 0;

    if (strncmp(name, prefix, n) != 0)
        return false;
    digits = strspn(name + n, "0123456789");
    if (digits == 0 || digits > 9 || name[n + digits] != '\0' ||
        host_read_parse_number(name + n, 10, &v) < 0)
        return false;
    *ret = (uint32_t)v;
    return true;
}
