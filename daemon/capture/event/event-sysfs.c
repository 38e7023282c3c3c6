/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/event/event-parse.h"
#include "util/file.h"

/*
 * The PMUs of this machine, as the kernel describes them below /sys/bus/event_source/devices: each
 * has a folder with its type, the bits of its terms, events by name, and the CPUs on which it
 * counts. Nothing is cached: texts are parsed only at a start or a reload, and drivers come and go.
 */

enum { PATH_SIZE = 1024 };

/* Words become parts of paths: a word with a slash or with a dot at its beginning is refused. */
static int event_sysfs_make_path(const EventHost *host, char *ret, const char *pmu,
                                 const char *folder, Bytes name) {
    int n;

    if ((pmu && pmu[0] == '.') || (name.size > 0 && name.data[0] == '.') ||
        memchr(name.size > 0 ? name.data : (const void *)"", '/', name.size))
        return -ENOENT;
    n = snprintf(ret, PATH_SIZE, "%s/bus/event_source/devices%s%s%s%s%s%.*s", host->sysfs,
                 pmu ? "/" : "", pmu ? pmu : "", folder ? "/" : "", folder ? folder : "",
                 name.size > 0 ? "/" : "", (int)name.size,
                 name.size > 0 ? (const char *)name.data : "");
    return n < 0 || n >= PATH_SIZE ? -ENOENT : 0;
}

int event_pmu_value(const EventHost *host, const char *pmu, const char *folder, Bytes name,
                    char *ret, size_t size) {
    char path[PATH_SIZE];
    int r = event_sysfs_make_path(host, path, pmu, folder, name);

    if (r < 0)
        return r;
    r = file_read_text(path, ret, size);
    /* An event whose file cannot be read, such as a folder, counts as missing. */
    return r < 0 ? -ENOENT : 0;
}

/* "cas_count_read.scale" describes another event. */
static bool event_sysfs_is_name(const struct dirent *entry, const void *userdata _unused_) {
    const char *dot = strrchr(entry->d_name, '.');

    return entry->d_name[0] != '.' &&
           !(dot && (strcmp(dot, ".scale") == 0 || strcmp(dot, ".unit") == 0 ||
                     strcmp(dot, ".per-pkg") == 0 || strcmp(dot, ".snapshot") == 0));
}

int event_pmu_names(const EventHost *host, const char *pmu, const char *folder, char ***ret) {
    char path[PATH_SIZE];
    DIR *dir;
    int r = event_sysfs_make_path(host, path, pmu, folder, (Bytes){});

    if (r < 0)
        return r;
    dir = opendir(path);
    return dir ? event_names_read(dir, event_sysfs_is_name, NULL, strverscmp, ret) : -errno;
}

int event_pmu_alias(const EventHost *host, const char *pmu, Bytes name, char *ret, size_t size) {
    return event_pmu_value(host, pmu, "events", name, ret, size);
}

/* A list of CPUs: "0-7,32-35". */
static int event_sysfs_parse_bits(const char *at, uint64_t *ret) {
    uint64_t bits = 0;

    do {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;

        if (end == at)
            return -EBADMSG;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (first > last || last > 63)
            return -EBADMSG;
        bits |= (~0ULL >> (63 - (last - first))) << first;
        at = end;
    } while (*at++ == ',');
    *ret = bits;
    return at[-1] == '\0' ? 0 : -EBADMSG;
}

int event_pmu_format(const EventHost *host, const char *pmu, Bytes name, EventFormat *ret) {
    static const char *const words[] = {"config:", "config1:", "config2:", "config3:"};
    char text[EVENT_VALUE_MAX];
    int r = event_pmu_value(host, pmu, "format", name, text, sizeof(text));

    if (r < 0)
        return r;
    for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
        size_t n = strlen(words[i]);
        uint64_t bits;

        if (strncmp(text, words[i], n) == 0 && event_sysfs_parse_bits(text + n, &bits) == 0) {
            *ret = (EventFormat){.word = i, .bits = bits};
            return 0;
        }
    }
    return -ENOENT;
}
