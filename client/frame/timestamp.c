/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/timestamp.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "util/clock.h"
#include "util/parse.h"

/*
 * A time is parsed from both ends: first the zone is removed from the end, since it decides which
 * day is today; then words and spans relative to now; the rest is a day and a time of day, each of
 * which is optional. A day that does not exist is refused instead of shifted to the next one,
 * because the text selects a window. For the zone of another place, TZ is set while its time is
 * computed, since the C library has no other way.
 */

enum {
    TEXT_MAX = 128,
    ZONE_MAX = 64,
    PATH_MAX_LENGTH = 256,
    SEC_PER_MIN = 60,
    MIN_PER_HOUR = 60,
    OFFSET_HOURS_MAX = 14,
};

#define US_MAX ((uint64_t)1 << 53) /* the largest exact integer in JSON */

#define ZONE_FOLDER "/usr/share/zoneinfo"

typedef struct Zone {
    bool local;
    int offset_s;            /* east of UTC */
    int dst;                 /* for local time: 1 summer, 0 winter, -1 either */
    char name[ZONE_MAX + 1]; /* the zone that local time refers to, with a leading colon; "":
                              * ours */
} Zone;

/* Drops the last n characters, and blanks before them. */
static void timestamp_cut_tail(char *text, size_t n) {
    size_t length = strlen(text) - n;

    while (length > 0 && text[length - 1] == ' ')
        length--;
    text[length] = '\0';
}

static bool timestamp_ends_with(const char *text, const char *tail) {
    size_t n = strlen(text), m = strlen(tail);

    return n > m && strcmp(text + n - m, tail) == 0;
}

/* "+02:00", "+0200" or "+02" at the end of a time of day; its length, or 0. */
static size_t timestamp_offset_length(const char *text, int *ret_s) {
    const char *colon = strchr(text, ':'), *sign = colon ? strpbrk(colon, "+-") : NULL;
    unsigned hours, minutes = 0;
    int end = 0;

    if (!sign)
        return 0;
    for (const char *p = sign + 1; *p; p++)
        if (!isdigit((unsigned char)*p) && *p != ':')
            return 0;
    if (sscanf(sign + 1, "%2u%n", &hours, &end) != 1 || end != 2)
        return 0;
    if (sign[3] && (sscanf(sign + 3, sign[3] == ':' ? ":%2u%n" : "%2u%n", &minutes, &end) != 1 ||
                    end != 2 + (sign[3] == ':') || sign[3 + end]))
        return 0;
    if (hours > OFFSET_HOURS_MAX || minutes >= MIN_PER_HOUR)
        return 0;
    *ret_s = (int)(hours * MIN_PER_HOUR + minutes) * SEC_PER_MIN * (*sign == '-' ? -1 : 1);
    return strlen(sign);
}

/* Whether it is a name in the database of zones. */
static bool timestamp_is_zone(const char *name) {
    const char *folder = getenv("TZDIR") ?: ZONE_FOLDER;
    char path[PATH_MAX_LENGTH];
    struct stat st;

    if (!isalpha((unsigned char)name[0]) || strlen(name) >= ZONE_MAX || strstr(name, "//"))
        return false;
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("/_+-", *p))
            return false;
    return snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path) &&
           stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Takes a word after the time: the name of our zone in winter or summer, or a place. */
static void timestamp_take_zone_name(char *text, Zone *zone) {
    const char *word = strrchr(text, ' ');

    if (!word)
        return;
    word++;
    tzset();
    for (int i = 0; i < 2 && zone->dst < 0; i++)
        if (strcmp(word, tzname[i]) == 0)
            zone->dst = i;
    if (zone->dst < 0 && !timestamp_is_zone(word))
        return;
    if (zone->dst < 0)
        snprintf(zone->name, sizeof(zone->name), ":%.*s", ZONE_MAX - 1, word);
    timestamp_cut_tail(text, strlen(word));
}

static Zone timestamp_take_zone(char *text) {
    Zone zone = {.dst = -1};
    size_t n = strlen(text);

    if (timestamp_ends_with(text, " UTC")) {
        timestamp_cut_tail(text, 4);
        return zone;
    }
    if (n > 1 && text[n - 1] == 'Z' && isdigit((unsigned char)text[n - 2])) {
        timestamp_cut_tail(text, 1);
        return zone;
    }
    n = timestamp_offset_length(text, &zone.offset_s);
    zone.local = n == 0;
    if (zone.local)
        timestamp_take_zone_name(text, &zone);
    else
        timestamp_cut_tail(text, n);
    return zone;
}

static void timestamp_break_down(uint64_t us, Zone zone, struct tm *ret) {
    time_t t = (time_t)(us / US_PER_SECOND);

    if (zone.local) {
        (void)localtime_r(&t, ret);
        return;
    }
    t += zone.offset_s;
    (void)gmtime_r(&t, ret);
}

static int timestamp_put_together(struct tm *tm, Zone zone, unsigned us, uint64_t *ret_us) {
    time_t t;

    tm->tm_isdst = zone.dst;
    t = zone.local ? mktime(tm) : timegm(tm) - zone.offset_s;
    if (t < 0 || (uint64_t)t > US_MAX / US_PER_SECOND - 1)
        return -ERANGE;
    *ret_us = (uint64_t)t * US_PER_SECOND + us;
    return 0;
}

static int timestamp_around_now(const char *span, bool before, uint64_t now_us, uint64_t *ret_us) {
    uint64_t ns;
    int r = parse_span(span + strspn(span, " "), &ns);

    if (r < 0)
        return r;
    if (!before && ns / NS_PER_US > US_MAX - MIN(now_us, US_MAX))
        return -ERANGE;
    *ret_us = before ? now_us - MIN(ns / NS_PER_US, now_us) : now_us + ns / NS_PER_US;
    return 0;
}

/* Parses up to `most` digits at *p; false if there are none, or more. */
static bool timestamp_take_number(const char **p, unsigned most, int *ret) {
    unsigned n = 0;
    int v = 0;

    for (; n <= most && isdigit((unsigned char)(*p)[n]); n++)
        v = v * 10 + ((*p)[n] - '0');
    if (n == 0 || n > most)
        return false;
    *p += n;
    *ret = v;
    return true;
}

/* Parses "Sat" or "saturday" into a number in *ret, or -1, and advances *p. */
static void timestamp_take_weekday(const char **p, int *ret) {
    static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};
    size_t n = strcspn(*p, " ");

    *ret = -1;
    for (size_t i = 0; i < ARRAY_SIZE(days) && (*p)[n]; i++)
        if ((n == 3 || n == strlen(days[i])) && strncasecmp(*p, days[i], n) == 0) {
            *ret = (int)i;
            *p += n + strspn(*p + n, " ");
            return;
        }
}

/* Parses "2026-11-21" or "26-11-21"; false if it is not a date. */
static bool timestamp_take_date(const char **p, struct tm *tm) {
    const char *begin = *p;
    int year, month, day;

    if (!timestamp_take_number(p, 4, &year) || *(*p)++ != '-' ||
        !timestamp_take_number(p, 2, &month) || *(*p)++ != '-' ||
        !timestamp_take_number(p, 2, &day))
        return false;
    if (strchr(begin, '-') - begin == 2)
        year += year < 69 ? 2000 : 1900;
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    tm->tm_mday = day;
    return true;
}

/* Parses "10:00" or "10:00:00.5". */
static bool timestamp_take_time(const char **p, struct tm *tm, unsigned *ret_us) {
    if (!timestamp_take_number(p, 2, &tm->tm_hour) || *(*p)++ != ':' ||
        !timestamp_take_number(p, 2, &tm->tm_min))
        return false;
    tm->tm_sec = 0;
    if (**p == ':') {
        uint64_t ns;

        (*p)++;
        if (!timestamp_take_number(p, 2, &tm->tm_sec) || parse_take_fraction(p, &ns) < 0)
            return false;
        *ret_us = (unsigned)(ns / NS_PER_US);
    }
    return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec <= 60;
}

/* Whether this day exists and is this weekday. */
static bool timestamp_day_exists(const struct tm *tm, int weekday) {
    struct tm same = {.tm_year = tm->tm_year, .tm_mon = tm->tm_mon, .tm_mday = tm->tm_mday};

    if (timegm(&same) == (time_t)-1 && tm->tm_year != 69)
        return false;
    return same.tm_mon == tm->tm_mon && same.tm_mday == tm->tm_mday &&
           (weekday < 0 || same.tm_wday == weekday);
}

/* Skips blanks or a T between a day and a time of day. False for anything else. */
static bool timestamp_take_separator(const char **p) {
    if (**p == 'T') {
        (*p)++;
        return **p != '\0';
    }
    if (**p && **p != ' ')
        return false;
    *p += strspn(*p, " ");
    return true;
}

static int timestamp_parse_calendar(const char *p, Zone zone, uint64_t now_us, uint64_t *ret_us) {
    const char *begin;
    unsigned us = 0;
    struct tm tm;
    int weekday;

    timestamp_break_down(now_us, zone, &tm);
    tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
    timestamp_take_weekday(&p, &weekday);
    begin = p;
    if (!timestamp_take_date(&p, &tm))
        p = begin;
    if ((p > begin && !timestamp_take_separator(&p)) || (p == begin && !*p))
        return -EINVAL;
    if (*p && !timestamp_take_time(&p, &tm, &us))
        return -EINVAL;
    if (*p || !timestamp_day_exists(&tm, weekday))
        return -EINVAL;
    return timestamp_put_together(&tm, zone, us, ret_us);
}

static int timestamp_parse_word(const char *text, Zone zone, uint64_t now_us, uint64_t *ret_us) {
    static const char *const days[] = {"yesterday", "today", "tomorrow"};
    struct tm tm;

    if (strcmp(text, "now") == 0) {
        *ret_us = now_us;
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(days); i++)
        if (strcmp(text, days[i]) == 0) {
            timestamp_break_down(now_us, zone, &tm);
            tm.tm_mday += (int)i - 1;
            tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
            return timestamp_put_together(&tm, zone, 0, ret_us);
        }
    return -ENOENT;
}

static int timestamp_parse_in_zone(const char *text, Zone zone, uint64_t now_us, uint64_t *ret_us) {
    int r = timestamp_parse_word(text, zone, now_us, ret_us);

    return r == -ENOENT ? timestamp_parse_calendar(text, zone, now_us, ret_us) : r;
}

static int timestamp_set_zone(const char *name) {
    int r = name ? setenv("TZ", name, 1) : unsetenv("TZ");

    tzset();
    return r < 0 ? -errno : 0;
}

static int timestamp_parse_elsewhere(const char *text, Zone zone, uint64_t now_us,
                                     uint64_t *ret_us) {
    const char *before = getenv("TZ");
    _cleanup_free_ char *ours = before ? strdup(before) : NULL;
    int r = before && !ours ? -ENOMEM : timestamp_set_zone(zone.name);

    if (r < 0)
        return r;
    r = timestamp_parse_in_zone(text, zone, now_us, ret_us);
    (void)timestamp_set_zone(ours);
    return r;
}

int timestamp_parse(const char *text, uint64_t now_us, uint64_t *ret_us) {
    char rest[TEXT_MAX];
    size_t n = strlen(text);
    Zone zone;

    if (n == 0 || n >= sizeof(rest))
        return -EINVAL;
    memcpy(rest, text, n + 1);
    if (rest[0] == '-' || rest[0] == '+')
        return timestamp_around_now(rest + 1, rest[0] == '-', now_us, ret_us);
    if (rest[0] == '@')
        return timestamp_around_now(rest + 1, false, 0, ret_us);
    if (timestamp_ends_with(rest, " ago") || timestamp_ends_with(rest, " left")) {
        bool before = rest[n - 1] == 'o';

        timestamp_cut_tail(rest, before ? 4 : 5);
        return timestamp_around_now(rest, before, now_us, ret_us);
    }
    zone = timestamp_take_zone(rest);
    return zone.name[0] ? timestamp_parse_elsewhere(rest, zone, now_us, ret_us)
                        : timestamp_parse_in_zone(rest, zone, now_us, ret_us);
}

int option_timestamp(const Option *option, const char *argument, void *field) {
    OptionTimestamp *time = field;
    uint64_t us;
    int r = timestamp_parse(argument, clock_ns(CLOCK_REALTIME) / NS_PER_US, &us);

    if (r < 0)
        return r;
    *time = (OptionTimestamp){.set = true, .us = us};
    return 0;
}

int option_span(const Option *option, const char *argument, void *field) {
    OptionTimestamp *span = field;
    uint64_t ns;
    int r = parse_span(argument, &ns);

    if (r < 0)
        return r;
    if (ns < NS_PER_US)
        return -EINVAL;
    *span = (OptionTimestamp){.set = true, .us = ns / NS_PER_US};
    return 0;
}
