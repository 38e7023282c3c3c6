/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/disk/segment-name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "store/disk/dirfd.h"
#include "util/clock.h"
#include "util/macro.h"
#include "util/parse.h"

/*
 * The names define the order of a session and its contents, so parsing is strict: a name that would
 * not be printed exactly like this is not ours. The next number is kept in a file of its own,
 * because all segments may have been deleted.
 */

#define SUFFIX ".perf.data"

enum { DIGITS_MIN = 8, DIGITS_MAX = 15, STAMP_LENGTH = SEGMENT_STAMP_SIZE - 1 };

/* clang-format off */
static const struct {
    const char  *suffix; /* after the stem */
    NameKind     kind;
    SegmentState state;
} suffixes[] = {
    { SUFFIX,            NAME_SEGMENT,  SEGMENT_CLOSED  },
    { SUFFIX ".open",    NAME_SEGMENT,  SEGMENT_OPEN    },
    { SUFFIX ".damaged", NAME_SEGMENT,  SEGMENT_DAMAGED },
    { ".json",           NAME_MANIFEST, SEGMENT_CLOSED  },
    { ".tracing",        NAME_TRACING,  SEGMENT_CLOSED  },
};
/* clang-format on */

SegmentName segment_name_at(uint64_t number, uint64_t real_ns) {
    /* The last second of the year 9999, so that the year has four digits. */
    const uint64_t last = 253402300799;
    time_t seconds = (time_t)MIN(real_ns / NS_PER_SECOND, last);
    SegmentName name = {.number = number};
    struct tm utc;

    if (!gmtime_r(&seconds, &utc) ||
        strftime(name.stamp, sizeof(name.stamp), "%Y%m%dT%H%M%SZ", &utc) != STAMP_LENGTH)
        memcpy(name.stamp, "19700101T000000Z", SEGMENT_STAMP_SIZE);
    return name;
}

void segment_name_beside(const SegmentName *name, const char *suffix, char ret[SEGMENT_NAME_MAX]) {
    snprintf(ret, SEGMENT_NAME_MAX, "%08" PRIu64 "-%s%s%s", name->number, name->stamp,
             name->recovered ? "~" : "", suffix);
}

void segment_name_print(const SegmentName *name, char ret[SEGMENT_NAME_MAX]) {
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
        if (suffixes[i].kind == NAME_SEGMENT && suffixes[i].state == name->state) {
            segment_name_beside(name, suffixes[i].suffix, ret);
            return;
        }
}

static bool segment_name_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool segment_name_is_stamp(const char *text) {
    for (size_t i = 0; i < STAMP_LENGTH; i++) {
        bool right = i == 8    ? text[i] == 'T'
                     : i == 15 ? text[i] == 'Z'
                               : segment_name_is_digit(text[i]);

        if (!right)
            return false;
    }
    return true;
}

static size_t segment_name_count_digits(const char *text) {
    size_t n = 0;

    while (segment_name_is_digit(text[n]))
        n++;
    return n;
}

static int segment_name_parse_stem(const char *text, SegmentName *ret, const char **ret_rest) {
    char digits[DIGITS_MAX + 1] = {};
    SegmentName name = {};
    size_t n = segment_name_count_digits(text);

    if (n < DIGITS_MIN || n > DIGITS_MAX || (n > DIGITS_MIN && text[0] == '0') || text[n] != '-' ||
        !segment_name_is_stamp(text + n + 1))
        return -EBADMSG;
    memcpy(digits, text, n);
    if (parse_u64(digits, &name.number) < 0)
        return -EBADMSG;
    text += n + 1;
    memcpy(name.stamp, text, STAMP_LENGTH);
    text += STAMP_LENGTH;
    name.recovered = *text == '~';
    *ret_rest = text + name.recovered;
    *ret = name;
    return 0;
}

void layout_file_name(Layout layout, size_t i, char ret[16]) {
    if (layout == LAYOUT_FILE)
        ret[0] = '\0';
    else if (i == 0)
        snprintf(ret, 16, "data");
    else
        snprintf(ret, 16, "data.%u", (unsigned)(i - 1));
}

int segment_name_parse(const char *text, NameKind *ret_kind, SegmentName *ret) {
    size_t length = strlen(text), k = strlen(DIRFD_SCRATCH);
    const char *rest;
    SegmentName name;

    if (strcmp(text, SEQUENCE_FILE) == 0 || strcmp(text, RUNTIME_FILE) == 0) {
        *ret_kind = NAME_OURS;
        return 0;
    }
    if (text[0] == '.' && length > k && strcmp(text + length - k, DIRFD_SCRATCH) == 0) {
        *ret_kind = NAME_SCRATCH;
        return 0;
    }
    if (segment_name_parse_stem(text, &name, &rest) < 0)
        return -EBADMSG;
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
        if (strcmp(rest, suffixes[i].suffix) == 0) {
            name.state = suffixes[i].state;
            *ret_kind = suffixes[i].kind;
            *ret = name;
            return 0;
        }
    return -EBADMSG;
}

uint64_t segment_name_real_ns(const SegmentName *name) {
    struct tm utc = {};
    time_t seconds;

    if (sscanf(name->stamp, "%4d%2d%2dT%2d%2d%2dZ", &utc.tm_year, &utc.tm_mon, &utc.tm_mday,
               &utc.tm_hour, &utc.tm_min, &utc.tm_sec) != 6)
        return 0;
    utc.tm_year -= 1900;
    utc.tm_mon -= 1;
    seconds = timegm(&utc);
    return seconds < 0 ? 0 : (uint64_t)seconds * NS_PER_SECOND;
}

uint64_t sequence_read(int folder) {
    _cleanup_(buffer_done) Buffer text = {};
    char digits[DIGITS_MAX + 2] = {};
    uint64_t next;

    if (dirfd_read(folder, SEQUENCE_FILE, DIGITS_MAX + 1, &text) < 0 || text.size < 2 ||
        text.data[text.size - 1] != '\n')
        return 0;
    memcpy(digits, text.data, text.size - 1);
    return parse_u64(digits, &next) < 0 ? 0 : next;
}

int sequence_write(int folder, uint64_t next) {
    char digits[32];
    int n = snprintf(digits, sizeof(digits), "%" PRIu64 "\n", next);

    return dirfd_write(folder, SEQUENCE_FILE,
                       (Bytes){.data = (const uint8_t *)digits, .size = (size_t)n});
}
