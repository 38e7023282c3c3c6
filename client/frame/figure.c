/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/figure.h"

#include <inttypes.h>

#include "util/text.h"

/*
 * Sizes, spans and moments in the style of systemctl: one decimal for a size, the two largest units
 * for a span, the name of the local zone for a moment. The output is not meant to be parsed;
 * programs use JSON.
 */

#define SECOND ((uint64_t)1000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define WEEK   (7 * DAY)
#define MONTH  (2629800 * SECOND)
#define YEAR   (12 * MONTH)

void figure_size(Buffer *out, uint64_t bytes) {
    static const char units[] = "KMGTPE";
    unsigned unit = 0;
    uint64_t tenths;

    if (bytes < 1024) {
        text_printf(out, "%" PRIu64 "B", bytes);
        return;
    }
    for (; bytes >= 1024 * 1024; bytes /= 1024)
        unit++;
    tenths = bytes * 10 / 1024;
    text_printf(out, "%" PRIu64 ".%" PRIu64 "%c", tenths / 10, tenths % 10, units[unit]);
}

void figure_count(Buffer *out, uint64_t n) {
    char digits[TEXT_NUMBER_MAX + 1];
    size_t length = (size_t)(text_put_u64(digits, n) - digits);

    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text_putc(out, ',');
        text_putc(out, digits[i]);
    }
}

/* clang-format off */
static const struct {
    uint64_t us;
    const char *one, *many;
} units[] = {
    { YEAR,   " year",  " years"  },
    { MONTH,  " month", " months" },
    { WEEK,   " week",  " weeks"  },
    { DAY,    " day",   " days"   },
    { HOUR,   " h",     " h"      },
    { MINUTE, " min",   " min"    },
    { SECOND, " s",     " s"      },
    { 1000,   " ms",    " ms"     },
    { 1,      " us",    " us"     },
};
/* clang-format on */

void figure_span(Buffer *out, uint64_t us) {
    unsigned shown = 0;

    for (size_t i = 0; i < ARRAY_SIZE(units) && shown < 2; i++) {
        uint64_t n = us / units[i].us;

        if (n == 0 && shown == 0)
            continue;
        if (n > 0)
            text_printf(out, "%s%" PRIu64 "%s", shown ? " " : "", n,
                        n == 1 ? units[i].one : units[i].many);
        /* 59 s and some ms are printed as 59s. */
        shown += units[i].us <= SECOND ? 2 : 1;
        us %= units[i].us;
    }
    if (shown == 0)
        text_puts(out, "0");
}

void figure_span_tenths(Buffer *out, uint64_t us) {
    enum { US_PER_TENTH = 100000, TENTHS_PER_MIN = 600 };
    uint64_t tenths = us / US_PER_TENTH + (us % US_PER_TENTH >= US_PER_TENTH / 2);

    if (tenths == 0)
        figure_span(out, us);
    else if (tenths >= TENTHS_PER_MIN)
        figure_span(out, (us + SECOND / 2) / SECOND * SECOND);
    else if (tenths % 10 == 0)
        text_printf(out, "%" PRIu64 " s", tenths / 10);
    else
        text_printf(out, "%" PRIu64 ".%" PRIu64 " s", tenths / 10, tenths % 10);
}

static void figure_print_moment(Buffer *out, uint64_t us, bool whole) {
    time_t seconds = (time_t)(us / SECOND);
    char text[80];
    struct tm tm;

    if (localtime_r(&seconds, &tm) &&
        (whole ? strftime(text, sizeof(text), "%a %Y-%m-%d %H:%M:%S %Z", &tm)
               : strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm)) > 0)
        text_escape_str(out, text);
    else
        text_printf(out, "%" PRIu64 ".%06" PRIu64, us / SECOND, us % SECOND);
}

void figure_moment(Buffer *out, uint64_t us) {
    figure_print_moment(out, us, true);
}

int figure_zone_min(uint64_t us) {
    time_t seconds = (time_t)(us / SECOND);
    struct tm tm;

    return localtime_r(&seconds, &tm) ? (int)(tm.tm_gmtoff / 60) : 0;
}

void figure_moment_short(Buffer *out, uint64_t us) {
    figure_print_moment(out, us, false);
}

void figure_ago(Buffer *out, uint64_t us, uint64_t now_us) {
    uint64_t span = now_us > us ? now_us - us : us - now_us;

    if (span < SECOND) {
        text_puts(out, "now");
        return;
    }
    if (us > now_us)
        text_puts(out, "in ");
    figure_span(out, span);
    if (us < now_us)
        text_puts(out, " ago");
}

void figure_since(Buffer *out, uint64_t us, uint64_t now_us) {
    figure_moment(out, us);
    text_puts(out, " (");
    figure_ago(out, us, now_us);
    text_putc(out, ')');
}
