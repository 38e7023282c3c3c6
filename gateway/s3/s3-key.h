/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The key of an object, from a template: %H the host, %N the session or the name of the snapshot,
 * %T the time of its beginning (20261124T215500Z), or of it %Y, %m, %d, %h, %M, %S. All times are
 * UTC, so the same window always has the same key.
 */

#include <stdbool.h>
#include <stdint.h>

#define S3_KEY_DEFAULT "%H/%Y/%m/%d/%N-%T.perf.data"

enum { S3_KEY_MAX = 1025 }; /* S3's limit, and a NUL */

typedef struct S3KeyFacts {
    const char *host, *name;
    uint64_t time_ns; /* CLOCK_REALTIME */
} S3KeyFacts;

/* -EINVAL with a sentence part in *ret_problem, which is static: two objects could get the same
 * key, or a key would not be accepted everywhere. */
int s3_key_check(const char *template, bool of_snapshots, const char **ret_problem);
/* The template must be valid. Bytes of a name other than letters, digits, '.', '-' and '_' become
 * '_'. -ENAMETOOLONG. */
int s3_key_make(const char *template, const S3KeyFacts *facts, char ret[S3_KEY_MAX]);
