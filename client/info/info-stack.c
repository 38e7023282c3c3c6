/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/info/info-stack.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/file.h"
#include "util/macro.h"
#include "util/text.h"

/*
 * How profd unwound the stacks of a segment stands in its manifest, beside the file or in the
 * folder, and not in the recording: perf has no place for it. A recording that was copied without
 * its manifest has no counts.
 */

enum { MANIFEST_BYTES_MAX = 8 << 20 };

/* clang-format off */
static const struct { const char *key, *name; size_t offset; } rows[] = {
    { "stacks_whole",     "whole",     offsetof(InfoStacks, whole)     },
    { "stacks_truncated", "truncated", offsetof(InfoStacks, truncated) },
    { "stacks_pending",   "pending",   offsetof(InfoStacks, pending)   },
    { "stacks_refused",   "refused",   offsetof(InfoStacks, refused)   },
    { "stacks_no_rule",   "noRule",    offsetof(InfoStacks, no_rule)   },
    { "stacks_anonymous", "anonymous", offsetof(InfoStacks, anonymous) },
    { "stacks_no_code",   "noCode",    offsetof(InfoStacks, no_code)   },
    { "stacks_stuck",     "stuck",     offsetof(InfoStacks, stuck)     },
    { "stacks_bits32",    "bits32",    offsetof(InfoStacks, bits32)    },
    { "stacks_no_user",   "noUser",    offsetof(InfoStacks, no_user)   },
};
/* clang-format on */

static uint64_t *info_stack_count(InfoStacks *stacks, size_t row) {
    return (uint64_t *)(void *)((char *)stacks + rows[row].offset);
}

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

static void info_stack_take(const json_t *manifest, InfoStacks *ret) {
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        json_int_t n = json_integer_value(json_object_get(manifest, rows[i].key));

        *info_stack_count(ret, i) = n > 0 ? (uint64_t)n : 0;
    }
}

bool info_stacks_read(const char *recording, InfoStacks *ret) {
    _cleanup_free_ char *text = malloc(MANIFEST_BYTES_MAX);
    json_auto_t *manifest = NULL;
    char path[PATH_MAX];
    uint64_t all = 0;

    *ret = (InfoStacks){};
    if (!text || info_stack_path(recording, path) < 0 ||
        file_read_text(path, text, MANIFEST_BYTES_MAX) < 0)
        return false;
    manifest = json_loads(text, 0, NULL);
    info_stack_take(manifest, ret);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        all |= *info_stack_count(ret, i);
    return all > 0;
}

static uint64_t info_stack_at(const InfoStacks *stacks, size_t row) {
    uint64_t n;

    memcpy(&n, (const char *)stacks + rows[row].offset, sizeof(n));
    return n;
}

void info_stacks_describe(const InfoStacks *stacks, Fields *fields) {
    fields_begin_object(fields, "stacks");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        fields_u64(fields, rows[i].name, info_stack_at(stacks, i));
    fields_end_object(fields);
}

void info_stacks_print(const InfoStacks *s, Buffer *out) {
    uint64_t all = s->whole + s->truncated + s->pending + s->refused + s->no_rule + s->anonymous +
                   s->no_code + s->stuck + s->bits32;

    if (all == 0)
        return;
    text_printf(out, "%.1f %% of %" PRIu64 " whole", 100.0 * (double)s->whole / (double)all, all);
    if (s->truncated > 0)
        text_printf(out, ", %" PRIu64 " truncated", s->truncated);
    if (s->pending > 0)
        text_printf(out, ", %" PRIu64 " before their unwind tables were made", s->pending);
    if (s->refused > 0)
        text_printf(out, ", %" PRIu64 " in files without unwind tables", s->refused);
    if (s->no_rule + s->anonymous + s->no_code + s->stuck > 0)
        text_printf(out, ", %" PRIu64 " in code without unwind rules",
                    s->no_rule + s->anonymous + s->no_code + s->stuck);
    if (s->bits32 > 0)
        text_printf(out, ", %" PRIu64 " of 32-bit programs", s->bits32);
}
