/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Describes which part of a time span was recorded, from replies of the daemon and from
 * recordings. */

#include <jansson.h>

#include "perfdata/feature/coverage.h"
#include "util/buffer.h"

/* "11:33:19 to 11:36:19", with dates if they are not today or differ, and with milliseconds if the
 * span is short. */
void coverage_times(Buffer *out, uint64_t since_us, uint64_t until_us);
/* For a page, which is read on another day and in another zone: "2026-11-26 11:33:19 to 11:36:19
 * CET", always with the date. */
void coverage_times_for_page(Buffer *out, uint64_t since_us, uint64_t until_us);
/* "no gaps", or "1 min 21 s of 3 min, not recorded 11:34:40 to 11:36:19 (stopped)", or "all but 30
 * ms of 3 min, …". */
void coverage_describe(Buffer *out, const PdCoverage *coverage);
void coverage_describe_for_page(Buffer *out, const PdCoverage *coverage);
/* "11:34:40 to 11:36:19 (stopped)" */
void coverage_describe_gap(Buffer *out, const PdGap *gap);

/* Reads the Coverage of a reply; false: it is unknown. *ret is overwritten and must be freed with
 * pd_coverage_done(). Its times are in nanoseconds. */
bool coverage_of_reply(const json_t *object, PdCoverage *ret);
/* One line for each of the newest `n` gaps that count; false: there are none. */
bool coverage_put_gaps(Buffer *out, const PdCoverage *coverage, size_t n);
