/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config/config-number.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "util/clock.h"
#include "util/macro.h"
#include "util/parse.h"
#include "util/text.h"

/*
 * Values to members and back. A row for each parser says how its text is read, what else the number
 * must be, and how it is printed; a bad value leaves what was there.
 */

int config_store_number(const ConfigKey *key, uint64_t v, void *base) {
    void *at = (char *)base + key->offset;
    uint32_t narrow = (uint32_t)v;

    if (v < key->min || v > key->max)
        return -ERANGE;
    assert(key->size == sizeof(v) || (key->size == sizeof(narrow) && v <= UINT32_MAX));
    memcpy(at, key->size == sizeof(v) ? (void *)&v : (void *)&narrow, key->size);
    return 0;
}

uint64_t config_number_of(const ConfigKey *key, const void *base) {
    const char *at = (const char *)base + key->offset;
    uint32_t narrow;
    uint64_t v;

    memcpy(&narrow, at, sizeof(narrow));
    if (key->size == sizeof(narrow))
        return narrow;
    memcpy(&v, at, sizeof(v));
    return v;
}

int config_read_percent(const char *value, uint64_t *ret) {
    char digits[4] = {};
    size_t n = strlen(value);
    int r;

    if (n < 2 || n > sizeof(digits) || value[n - 1] != '%')
        return -EINVAL;
    memcpy(digits, value, n - 1);
    r = parse_u64(digits, ret);
    return r == 0 && *ret > 100 ? -ERANGE : r;
}

int config_parse_bool(const ConfigKey *key, const char *value, void *base) {
    assert(key->size == sizeof(bool));
    return parse_bool(value, (bool *)((char *)base + key->offset));
}

typedef int (*NumberParser)(const char *text, uint64_t *ret);

static int config_number_parse(const ConfigKey *key, const char *value, void *base,
                               NumberParser parse) {
    uint64_t v;
    int r = parse(value, &v);

    return r < 0 ? r : config_store_number(key, v, base);
}

static int config_number_parse_limit(const ConfigKey *key, const char *value, void *base,
                                     NumberParser parse) {
    ConfigKey any = *key;
    uint64_t v = 0;
    int r = strcasecmp(value, "infinity") == 0 ? 0 : parse(value, &v);

    if (v == 0)
        any.min = 0;
    return r < 0 ? r : config_store_number(&any, v, base);
}

int config_parse_count(const ConfigKey *key, const char *value, void *base) {
    return config_number_parse(key, value, base, parse_u64);
}

int config_parse_size(const ConfigKey *key, const char *value, void *base) {
    return config_number_parse(key, value, base, parse_size);
}

int config_parse_span(const ConfigKey *key, const char *value, void *base) {
    return config_number_parse(key, value, base, parse_span);
}

int config_parse_count_limit(const ConfigKey *key, const char *value, void *base) {
    return config_number_parse_limit(key, value, base, parse_u64);
}

int config_parse_size_limit(const ConfigKey *key, const char *value, void *base) {
    return config_number_parse_limit(key, value, base, parse_size);
}

int config_parse_span_limit(const ConfigKey *key, const char *value, void *base) {
    return config_number_parse_limit(key, value, base, parse_span);
}

static int config_number_power_of_two(const char *text, uint64_t *ret) {
    uint64_t v;
    int r = parse_size(text, &v);

    if (r < 0 || (v & (v - 1)) != 0)
        return r < 0 ? r : -EINVAL;
    *ret = v;
    return 0;
}

int config_parse_power_of_two(const ConfigKey *key, const char *value, void *base) {
    return config_number_parse(key, value, base, config_number_power_of_two);
}

typedef struct ScaledUnit {
    uint64_t factor;
    const char *name;
} ScaledUnit;

static void config_number_put_scaled(Buffer *out, uint64_t v, const ScaledUnit *units, size_t n) {
    size_t i = 0;

    while (i + 1 < n && (v == 0 || v % units[i].factor != 0))
        i++;
    text_u64(out, v / units[i].factor);
    text_puts(out, units[i].name);
}

void config_put_size(Buffer *out, uint64_t bytes) {
    static const ScaledUnit units[] = {
        {1ULL << 40, "T"}, {1ULL << 30, "G"}, {1ULL << 20, "M"}, {1ULL << 10, "K"}, {1, ""}};

    config_number_put_scaled(out, bytes, units, ARRAY_SIZE(units));
}

static void config_number_put_span(Buffer *out, uint64_t ns) {
    static const ScaledUnit units[] = {
        {86400 * NS_PER_SECOND, "d"}, {3600 * NS_PER_SECOND, "h"}, {60 * NS_PER_SECOND, "min"},
        {NS_PER_SECOND, "s"},         {NS_PER_MS, "ms"},           {NS_PER_US, "us"}};

    config_number_put_scaled(out, ns, units, ARRAY_SIZE(units));
}

/* clang-format off */
static const struct {
    int  (*parse)(const ConfigKey *key, const char *value, void *base);
    void (*put)(Buffer *out, uint64_t v);
    bool is_limit;
} rows[] = {
    { config_parse_count,        text_u64,               false },
    { config_parse_size,         config_put_size,        false },
    { config_parse_span,         config_number_put_span, false },
    { config_parse_power_of_two, config_put_size,        false },
    { config_parse_count_limit,  text_u64,               true  },
    { config_parse_size_limit,   config_put_size,        true  },
    { config_parse_span_limit,   config_number_put_span, true  },
};
/* clang-format on */

bool config_print_number(const ConfigKey *key, const void *base, Buffer *out) {
    if (key->parse == config_parse_bool) {
        text_puts(out, *(const bool *)((const char *)base + key->offset) ? "yes" : "no");
        return true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        uint64_t v;

        if (rows[i].parse != key->parse)
            continue;
        v = config_number_of(key, base);
        if (rows[i].is_limit && v == 0)
            text_puts(out, "infinity");
        else
            rows[i].put(out, v);
        return true;
    }
    return false;
}
