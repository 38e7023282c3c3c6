/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/time-range.h"

#include <errno.h>
#include <string.h>

/*
 * Time spans as people type them after reading perf script. Percentages stay millionths until the
 * span of the recording is known; integers make the result the same everywhere.
 */

enum { MILLION = 1000000 };

/* Parses "12.5%" in millionths. */
static int time_range_parse_percent(const char *s, size_t n, uint64_t *ret) {
    uint64_t ns;
    int r;

    if (n < 2 || s[n - 1] != '%')
        return -EINVAL;
    r = parse_seconds(s, n - 1, &ns);
    if (r < 0)
        return r;
    if (ns > 100ULL * 1000000000)
        return -EINVAL;
    *ret = ns / 100000;
    return 0;
}

/* Parses "10%/2", the second tenth. */
static int time_range_parse_slice(const char *s, const char *slash, TimeRange *ret) {
    uint64_t each, n, end;
    int r = time_range_parse_percent(s, (size_t)(slash - s), &each);

    if (r < 0)
        return r;
    r = parse_seconds(slash + 1, strlen(slash + 1), &n);
    if (r < 0)
        return r;
    if (n % 1000000000 != 0 || n == 0 || each == 0)
        return -EINVAL;
    n /= 1000000000;
    if (__builtin_mul_overflow(each, n, &end) || end > MILLION)
        return -EINVAL;
    *ret = (TimeRange){.set = true, .percent = true, .from = end - each, .to = end};
    return 0;
}

static int time_range_parse_percents(const char *s, TimeRange *ret) {
    const char *slash = strchr(s, '/'), *dash = strchr(s, '-');
    uint64_t from, to;
    int r;

    if (slash)
        return time_range_parse_slice(s, slash, ret);
    if (!dash)
        return -EINVAL;
    r = time_range_parse_percent(s, (size_t)(dash - s), &from);
    if (r < 0)
        return r;
    r = time_range_parse_percent(dash + 1, strlen(dash + 1), &to);
    if (r < 0)
        return r;
    if (from > to)
        return -EINVAL;
    *ret = (TimeRange){.set = true, .percent = true, .from = from, .to = to};
    return 0;
}

int option_time_range(const Option *option, const char *argument, void *field) {
    const char *comma = strchr(argument, ',');
    uint64_t from = 0, to = UINT64_MAX;
    int r = 0;

    if (strchr(argument, '%'))
        return time_range_parse_percents(argument, field);
    if (!comma)
        return -EINVAL;
    if (comma > argument)
        r = parse_seconds(argument, (size_t)(comma - argument), &from);
    if (r >= 0 && comma[1])
        r = parse_seconds(comma + 1, strlen(comma + 1), &to);
    if (r < 0)
        return r;
    if (from > to)
        return -EINVAL;
    *(TimeRange *)field = (TimeRange){.set = true, .from = from, .to = to};
    return 0;
}

static uint64_t time_range_share(uint64_t span, uint64_t millionths) {
    return span / MILLION * millionths + span % MILLION * millionths / MILLION;
}

void time_range_resolve(TimeRange *range, uint64_t first, uint64_t last) {
    uint64_t span = last > first ? last - first : 0;

    if (!range->percent)
        return;
    range->from = first + time_range_share(span, range->from);
    range->to = first + time_range_share(span, range->to);
    range->percent = false;
}
