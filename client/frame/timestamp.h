/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Times in the format of journalctl: "2026-11-21 10:00:00.5", in part or with " UTC", "Z" or an
 * offset like "+02:00" after it, "today", "now", "-5min", "5min ago", "+30s", "@123.5".
 */

#include "client/frame/option.h"

/*
 * Microseconds since 1970, in local time if the text has no zone. -EINVAL: not a time, or no such
 * day; -ERANGE.
 */
int timestamp_parse(const char *text, uint64_t now_us, uint64_t *ret_us);

typedef struct OptionTimestamp {
    bool set;
    uint64_t us;
} OptionTimestamp;

/* Field: OptionTimestamp. */
int option_timestamp(const Option *option, const char *argument, void *field);
/* Field: OptionTimestamp; a span like "60s", not 0. */
int option_span(const Option *option, const char *argument, void *field);
