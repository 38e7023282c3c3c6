/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a request for a profile or for symbols asks, as text. Nothing here does I/O. */

#include <stdbool.h>
#include <stdint.h>

#include "util/bytes.h"

enum {
    LISTEN_SECONDS_DEFAULT = 30,
    LISTEN_SECONDS_MAX = 3600,
    LISTEN_UNIT_MAX = 255,
    LISTEN_QUERY_MAX = 2048,
};

/* Which samples of [since, until), times of CLOCK_REALTIME, a profile has. */
typedef struct ListenQuery {
    uint64_t since_ns, until_ns;
    bool has_pid;
    uint32_t pid;
    char unit[LISTEN_UNIT_MAX + 1]; /* "": all */
} ListenQuery;

/*
 * The query of an URL, without "?"; NULL: there is none. seconds=N are the past N seconds, or those
 * from since= on, which is a time in seconds since 1970 or "-SPAN", so long ago; since= alone
 * reaches to now. -EINVAL with a sentence in *ret_problem, which is static.
 */
int listen_query_parse(const char *text, uint64_t now_ns, ListenQuery *ret,
                       const char **ret_problem);

/* Takes the next address of 0xADDR+0xADDR… : 1, 0 at the end, or -EINVAL. */
int listen_query_take_address(Bytes *text, uint64_t *ret);
