/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-key.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/clock.h"
#include "util/macro.h"

/*
 * Makes keys of objects. They hold letters, digits, '.', '-', '_' and '/' only: no signature
 * depends on how such a key is written in a URL, and no shell or file system needs a quote for it.
 */

#define S3_KEY_PLAIN  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
#define S3_KEY_MOMENT "YmdhMS" /* together they are a time to the second */

enum { S3_KEY_TIME_MAX = 96 };

/* A part "." or "..", or an empty one, would change the path of the URL. */
static const char *s3_key_check_part(const char *part, size_t n) {
    if (n == 0)
        return "a part between two '/' is empty";
    if (part[0] == '.' && (n == 1 || (n == 2 && part[1] == '.')))
        return "'.' and '..' are no parts of a key";
    return NULL;
}

static const char *s3_key_check_parts(const char *template) {
    const char *problem = NULL;

    for (const char *part = template; part && !problem;) {
        const char *end = strchrnul(part, '/');

        problem = s3_key_check_part(part, (size_t)(end - part));
        part = *end ? end + 1 : NULL;
    }
    return problem;
}

/* Which codes it has, as bits of their place in "HNT" S3_KEY_MOMENT. */
static const char *s3_key_check_codes(const char *template, unsigned *ret_codes) {
    static const char codes[] = "HNT" S3_KEY_MOMENT;

    *ret_codes = 0;
    for (const char *p = template; *p; p++) {
        const char *code;

        if (*p != '%') {
            if (!strchr(S3_KEY_PLAIN "/", *p))
                return "it has other characters than letters, digits, '.', '_', '-', '/' and codes";
            continue;
        }
        code = *++p ? strchr(codes, *p) : NULL;
        if (!code)
            return "its codes are %H, %N, %T, %Y, %m, %d, %h, %M and %S";
        *ret_codes |= 1U << (code - codes);
    }
    return NULL;
}

int s3_key_check(const char *template, bool of_snapshots, const char **ret_problem) {
    enum { NAME = 1 << 1, TIME = 1 << 2, MOMENT = 0x3f << 3 };
    const char *problem;
    unsigned codes;

    problem = s3_key_check_codes(template, &codes);
    if (!problem)
        problem = s3_key_check_parts(template);
    if (!problem && !(codes & TIME) && (codes & MOMENT) != MOMENT)
        problem = "two objects would have the same key: it lacks %T";
    if (!problem && of_snapshots && !(codes & NAME))
        problem = "two snapshots would have the same key: it lacks %N";
    if (!problem)
        return 0;
    *ret_problem = problem;
    return -EINVAL;
}

/* Writes a name with the characters of a key; a leading '.' could make a part "..". */
static size_t s3_key_put_name(char *to, size_t room, const char *name) {
    size_t n = strlen(name);

    for (size_t i = 0; i < n && i < room; i++)
        to[i] = strchr(S3_KEY_PLAIN, name[i]) && (i > 0 || name[i] != '.') ? name[i] : '_';
    if (n == 0 && room > 0)
        to[0] = '_';
    return n > 0 ? n : 1;
}

/* The time of a code; "" if it is none. */
static void s3_key_time(char code, const struct tm *tm, char ret[S3_KEY_TIME_MAX]) {
    const struct {
        char code;
        int value;
    } rows[] = {{'m', tm->tm_mon + 1},
                {'d', tm->tm_mday},
                {'h', tm->tm_hour},
                {'M', tm->tm_min},
                {'S', tm->tm_sec}};

    ret[0] = '\0';
    if (code == 'T')
        (void)snprintf(ret, S3_KEY_TIME_MAX, "%04d%02d%02dT%02d%02d%02dZ", tm->tm_year + 1900,
                       tm->tm_mon + 1, tm->tm_mday, tm->tm_hour, tm->tm_min, tm->tm_sec);
    else if (code == 'Y')
        (void)snprintf(ret, S3_KEY_TIME_MAX, "%04d", tm->tm_year + 1900);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].code == code)
            (void)snprintf(ret, S3_KEY_TIME_MAX, "%02d", rows[i].value);
}

static size_t s3_key_put_code(char *to, size_t room, char code, const S3KeyFacts *facts) {
    time_t seconds = (time_t)(facts->time_ns / NS_PER_SECOND);
    char text[S3_KEY_TIME_MAX];
    struct tm tm = {};

    if (code == 'H' || code == 'N')
        return s3_key_put_name(to, room, code == 'H' ? facts->host : facts->name);
    (void)gmtime_r(&seconds, &tm);
    s3_key_time(code, &tm, text);
    return s3_key_put_name(to, room, text);
}

int s3_key_make(const char *template, const S3KeyFacts *facts, char ret[S3_KEY_MAX]) {
    char key[S3_KEY_MAX];
    size_t n = 0;

    for (const char *p = template; *p; p++) {
        size_t room = sizeof(key) - 1 - n, added = 1;

        if (*p == '%' && p[1])
            added = s3_key_put_code(key + n, room, *++p, facts);
        else if (room > 0)
            key[n] = *p;
        if (added > room)
            return -ENAMETOOLONG;
        n += added;
    }
    key[n] = '\0';
    memcpy(ret, key, n + 1);
    return 0;
}
