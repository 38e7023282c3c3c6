/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/parse.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "util/clock.h"
#include "util/macro.h"

/*
 * Parses numbers without strtoul's signs, spaces and bases. Units are tables; fractions as in
 * "1.5h" may have nine digits.
 */

typedef struct Unit {
    const char *name;
    uint64_t factor;
} Unit;

/* clang-format off */
static const Unit size_units[] = {
    { "",  1          }, { "B", 1          },
    { "K", 1 << 10    }, { "k", 1 << 10    },
    { "M", 1 << 20    }, { "m", 1 << 20    },
    { "G", 1 << 30    }, { "g", 1 << 30    },
    { "T", 1ULL << 40 }, { "t", 1ULL << 40 },
};

static const Unit span_units[] = {
    { "us",      1000                     }, { "usec",    1000                     },
    { "\u00b5s", 1000                     }, { "\u03bcs", 1000                     },
    { "ms",      1000000                  }, { "msec",    1000000                  },
    { "s",       NS_PER_SECOND               }, { "sec",     NS_PER_SECOND               },
    { "second",  NS_PER_SECOND               }, { "seconds", NS_PER_SECOND               },
    { "m",       60 * NS_PER_SECOND          }, { "min",     60 * NS_PER_SECOND          },
    { "minute",  60 * NS_PER_SECOND          }, { "minutes", 60 * NS_PER_SECOND          },
    { "h",       3600 * NS_PER_SECOND        }, { "hr",      3600 * NS_PER_SECOND        },
    { "hour",    3600 * NS_PER_SECOND        }, { "hours",   3600 * NS_PER_SECOND        },
    { "d",       86400 * NS_PER_SECOND       }, { "day",     86400 * NS_PER_SECOND       },
    { "days",    86400 * NS_PER_SECOND       }, { "w",       7 * 86400 * NS_PER_SECOND   },
    { "week",    7 * 86400 * NS_PER_SECOND   }, { "weeks",   7 * 86400 * NS_PER_SECOND   },
    { "M",       2629800 * NS_PER_SECOND     }, { "month",   2629800 * NS_PER_SECOND     },
    { "months",  2629800 * NS_PER_SECOND     }, { "y",       31557600 * NS_PER_SECOND    },
    { "year",    31557600 * NS_PER_SECOND    }, { "years",   31557600 * NS_PER_SECOND    },
    { "",        NS_PER_SECOND               },
};
/* clang-format on */

int parse_take_digits(const char **p, uint64_t *ret) {
    uint64_t v = 0;

    if (!isdigit((unsigned char)**p))
        return -EINVAL;
    for (; isdigit((unsigned char)**p); (*p)++)
        if (__builtin_mul_overflow(v, 10ULL, &v) ||
            __builtin_add_overflow(v, (uint64_t)(**p - '0'), &v))
            return -ERANGE;
    *ret = v;
    return 0;
}

int parse_take_fraction(const char **p, uint64_t *ret_billionths) {
    uint64_t v = 0, digits = 0;

    *ret_billionths = 0;
    if (**p != '.')
        return 0;
    (*p)++;
    for (; isdigit((unsigned char)**p); (*p)++, digits++)
        if (digits < 9)
            v = v * 10 + (uint64_t)(**p - '0');
    if (digits == 0)
        return -EINVAL;
    for (; digits < 9; digits++)
        v *= 10;
    *ret_billionths = v;
    return 0;
}

/* A letter, or a byte of the micro sign. */
static bool parse_is_of_unit(char c) {
    return isalpha((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* Adds one number with its unit to *sum. Case matters: m is a minute, M a month. */
static int parse_take_quantity(const char **p, const Unit *units, size_t n, uint64_t *sum) {
    uint64_t whole, billionths = 0, value;
    size_t length;
    int r = parse_take_digits(p, &whole);

    if (r == 0)
        r = parse_take_fraction(p, &billionths);
    if (r < 0)
        return r;
    *p += strspn(*p, " ");
    for (length = 0; parse_is_of_unit((*p)[length]); length++)
        ;
    for (size_t i = 0; i < n; i++) {
        if (strlen(units[i].name) != length || memcmp(*p, units[i].name, length) != 0)
            continue;
        *p += length;
        if (__builtin_mul_overflow(whole, units[i].factor, &value) ||
            __builtin_add_overflow(
                value, (uint64_t)((unsigned __int128)billionths * units[i].factor / NS_PER_SECOND),
                &value) ||
            __builtin_add_overflow(*sum, value, sum))
            return -ERANGE;
        return 0;
    }
    return -EINVAL;
}

int parse_u64(const char *text, uint64_t *ret) {
    uint64_t v;
    int r = parse_take_digits(&text, &v);

    if (r < 0 || *text)
        return r < 0 ? r : -EINVAL;
    *ret = v;
    return 0;
}

int parse_size(const char *text, uint64_t *ret_bytes) {
    uint64_t v = 0;
    int r = parse_take_quantity(&text, size_units, ARRAY_SIZE(size_units), &v);

    if (r < 0 || *text)
        return r < 0 ? r : -EINVAL;
    *ret_bytes = v;
    return 0;
}

int parse_span(const char *text, uint64_t *ret_ns) {
    uint64_t v = 0;

    do {
        int r = parse_take_quantity(&text, span_units, ARRAY_SIZE(span_units), &v);

        if (r < 0)
            return r;
        text += strspn(text, " ");
    } while (*text);
    *ret_ns = v;
    return 0;
}

int parse_bool(const char *text, bool *ret) {
    static const char *const words[][2] = {
        {"no", "yes"}, {"false", "true"}, {"off", "on"}, {"0", "1"}};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        for (unsigned v = 0; v < 2; v++)
            if (strcasecmp(text, words[i][v]) == 0) {
                *ret = v;
                return 0;
            }
    return -EINVAL;
}

bool parse_is_name(const char *text, size_t max) {
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return n > 0 && n <= max && !text[n] && !strchr("._-", text[0]);
}
