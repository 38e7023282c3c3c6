/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "listen/listen-query.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "util/clock.h"
#include "util/macro.h"
#include "util/parse.h"

/*
 * Parses queries. A parameter is a row of a table; one that is unknown or comes twice is refused,
 * because a profile of other samples than those that were meant looks like any other.
 */

enum { VALUE_MAX = LISTEN_UNIT_MAX };

/* What was said, before defaults. */
typedef struct QueryWords {
    uint64_t now_ns, seconds, since_ns;
    bool has_since;
    ListenQuery query;
} QueryWords;

static int listen_query_put_seconds(const char *value, QueryWords *words) {
    uint64_t seconds;
    int r = parse_u64(value, &seconds);

    if (r < 0 || seconds < 1 || seconds > LISTEN_SECONDS_MAX)
        return -EINVAL;
    words->seconds = seconds;
    return 0;
}

static int listen_query_take_time(const char *value, uint64_t *ret_ns) {
    uint64_t seconds, parts, ns;
    int r = parse_take_digits(&value, &seconds);

    if (r == 0)
        r = parse_take_fraction(&value, &parts);
    if (r < 0 || *value || __builtin_mul_overflow(seconds, NS_PER_SECOND, &ns) ||
        __builtin_add_overflow(ns, parts, &ns))
        return -EINVAL;
    *ret_ns = ns;
    return 0;
}

static int listen_query_put_since(const char *value, QueryWords *words) {
    uint64_t since_ns, span_ns;

    if (*value == '-') {
        if (parse_span(value + 1, &span_ns) < 0 || span_ns > words->now_ns)
            return -EINVAL;
        since_ns = words->now_ns - span_ns;
    } else if (listen_query_take_time(value, &since_ns) < 0)
        return -EINVAL;
    if (since_ns >= words->now_ns)
        return -EINVAL;
    words->since_ns = since_ns;
    words->has_since = true;
    return 0;
}

static int listen_query_put_pid(const char *value, QueryWords *words) {
    uint64_t pid;

    if (parse_u64(value, &pid) < 0 || pid > INT32_MAX)
        return -EINVAL;
    words->query.has_pid = true;
    words->query.pid = (uint32_t)pid;
    return 0;
}

static int listen_query_put_unit(const char *value, QueryWords *words) {
    size_t n = strlen(value);

    if (n < 1 || n > LISTEN_UNIT_MAX)
        return -EINVAL;
    memcpy(words->query.unit, value, n + 1);
    return 0;
}

typedef struct QueryRow {
    const char *name;
    int (*put)(const char *value, QueryWords *words);
    const char *problem;
} QueryRow;

/* clang-format off */
static const QueryRow query_rows[] = {
    {"seconds", listen_query_put_seconds, "seconds= is a number from 1 to 3600."},
    {"since",   listen_query_put_since,   "since= is a time in the past, in seconds since 1970, or a span such as -10min."},
    {"pid",     listen_query_put_pid,     "pid= is the number of one process."},
    {"unit",    listen_query_put_unit,    "unit= is the name of one unit, such as nginx.service."},
};
/* clang-format on */

static int listen_query_hex(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Undoes %XX and "+" of n bytes. */
static int listen_query_decode(const char *text, size_t n, char ret[VALUE_MAX + 1]) {
    char to[VALUE_MAX + 1];
    size_t size = 0;

    for (size_t i = 0; i < n; i++) {
        char c = text[i] == '+' ? ' ' : text[i];

        if (c == '%') {
            int high = n - i > 2 ? listen_query_hex(text[i + 1]) : -1;
            int low = n - i > 2 ? listen_query_hex(text[i + 2]) : -1;

            if (high < 0 || low < 0)
                return -EINVAL;
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (c == '\0' || size == VALUE_MAX)
            return -EINVAL;
        to[size++] = c;
    }
    to[size] = '\0';
    memcpy(ret, to, size + 1);
    return 0;
}

/* One NAME=VALUE of n bytes; *seen are the rows that came before. */
static int listen_query_put(const char *text, size_t n, QueryWords *words, unsigned *seen,
                            const char **ret_problem) {
    const char *equals = memchr(text, '=', n);
    size_t n_name = equals ? (size_t)(equals - text) : n;
    char value[VALUE_MAX + 1] = "";

    for (size_t i = 0; i < ARRAY_SIZE(query_rows); i++) {
        const QueryRow *row = &query_rows[i];

        if (strlen(row->name) != n_name || memcmp(row->name, text, n_name) != 0)
            continue;
        *ret_problem = row->problem;
        if (!equals || *seen & 1U << i)
            return -EINVAL;
        *seen |= 1U << i;
        if (listen_query_decode(equals + 1, n - n_name - 1, value) < 0)
            return -EINVAL;
        return row->put(value, words);
    }
    *ret_problem = "The parameters are seconds, since, unit and pid, each at most once.";
    return -EINVAL;
}

static int listen_query_close(QueryWords *words, const char **ret_problem) {
    ListenQuery *query = &words->query;
    uint64_t span_ns = (words->seconds ?: LISTEN_SECONDS_DEFAULT) * NS_PER_SECOND;

    if (!words->has_since) {
        query->until_ns = words->now_ns;
        query->since_ns = words->now_ns - MIN(span_ns, words->now_ns);
        return 0;
    }
    query->since_ns = words->since_ns;
    query->until_ns = words->now_ns;
    if (words->seconds > 0 && words->now_ns - words->since_ns > span_ns)
        query->until_ns = words->since_ns + span_ns;
    if (query->until_ns - query->since_ns > LISTEN_SECONDS_MAX * NS_PER_SECOND) {
        *ret_problem = "That is more than an hour; give seconds= as well.";
        return -EINVAL;
    }
    return 0;
}

int listen_query_parse(const char *text, uint64_t now_ns, ListenQuery *ret,
                       const char **ret_problem) {
    QueryWords words = {.now_ns = now_ns};
    unsigned seen = 0;
    int r = 0;

    if (text && strlen(text) > LISTEN_QUERY_MAX) {
        *ret_problem = "The query is too long.";
        return -EINVAL;
    }
    while (text && *text && r == 0) {
        size_t n = strcspn(text, "&");

        if (n > 0)
            r = listen_query_put(text, n, &words, &seen, ret_problem);
        text += n + (text[n] == '&');
    }
    if (r == 0)
        r = listen_query_close(&words, ret_problem);
    if (r == 0)
        *ret = words.query;
    return r;
}

int listen_query_take_address(Bytes *text, uint64_t *ret) {
    const uint8_t *at = text->data, *end = at + text->size;
    uint64_t address = 0;
    int digits = 0;

    if (text->size == 0)
        return 0;
    if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
        at += 2;
    for (; at < end && listen_query_hex((char)*at) >= 0; at++) {
        if (++digits > 16)
            return -EINVAL;
        address = address << 4 | (uint64_t)listen_query_hex((char)*at);
    }
    if (digits == 0 || (at < end && *at != '+'))
        return -EINVAL;
    at += at < end;
    *text = (Bytes){.data = at, .size = (size_t)(end - at)};
    *ret = address;
    return 1;
}
