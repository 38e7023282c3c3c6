/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/info/info-stack.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/file.h"
#include "util/macro.h"

/*
 * How profd unwound the stacks of a segment stands in its manifest, beside the file or in the
 * folder, and not in the recording: perf has no place for it. A recording that was copied without
 * its manifest has no counts.
 */

enum { MANIFEST_BYTES_MAX = 8 << 20 };

/* "00000001-….perf.data" has its manifest in "00000001-….json", a folder in "manifest.json". */
static int info_stack_path(const char *recording, char ret[PATH_MAX]) {
    static const char suffix[] = ".perf.data";
    size_t n = strlen(recording), k = strlen(suffix);
    struct stat st;
    int r;

    if (stat(recording, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        r = snprintf(ret, PATH_MAX, "%s/manifest.json", recording);
    else if (n > k && strcmp(recording + n - k, suffix) == 0)
        r = snprintf(ret, PATH_MAX, "%.*s.json", (int)(n - k), recording);
    else
        return -ENOENT;
    return r < 0 || r >= PATH_MAX ? -ENAMETOOLONG : 0;
}

bool info_stacks_read(const char *recording, StackCounts *ret) {
    _cleanup_free_ char *text = malloc(MANIFEST_BYTES_MAX);
    json_auto_t *manifest = NULL;
    char path[PATH_MAX];
    uint64_t all = 0;

    *ret = (StackCounts){};
    if (!text || info_stack_path(recording, path) < 0 ||
        file_read_text(path, text, MANIFEST_BYTES_MAX) < 0)
        return false;
    manifest = json_loads(text, 0, NULL);
    for (size_t i = 0; i < STACK_ROWS; i++) {
        json_int_t n = json_integer_value(json_object_get(manifest, stack_rows[i].key));

        ret->samples[i] = n > 0 ? (uint64_t)n : 0;
        all |= ret->samples[i];
    }
    return all > 0;
}

void info_stacks_describe(const StackCounts *stacks, Fields *fields) {
    fields_begin_object(fields, "stacks");
    for (size_t i = 0; i < STACK_ROWS; i++)
        fields_u64(fields, stack_rows[i].name, stacks->samples[i]);
    fields_end_object(fields);
}
