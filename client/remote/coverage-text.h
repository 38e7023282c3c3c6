/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which part of a span was recorded, in words: from replies of the daemon and from recordings. */

#include <jansson.h>

#include "perfdata/feature/coverage.h"
#include "util/buffer.h"

/* "11:33:19 to 11:36:19", with days where they are not today's or differ, and with milliseconds
 * where there is little between the two. */
void coverage_times(Buffer *out, uint64_t since_us, uint64_t until_us);
/* "no gaps", or "1 min 21 s of 3 min, not recorded 11:34:40 to 11:36:19 (stopped)", or "all but 30
 * ms of 3 min, …". */
void coverage_describe(Buffer *out, const PdCoverage *coverage);
/* "11:34:40 to 11:36:19 (stopped)" */
void coverage_describe_gap(Buffer *out, const PdGap *gap);

/* The same of Coverage as the daemon tells it; false: there is none, nothing is known. *ret is
 * overwritten, and to be freed with pd_coverage_done(). Of a reply times are what they are, in
 * nanoseconds. */
bool coverage_of_reply(const json_t *object, PdCoverage *ret);
/* A line of gaps that count, the newest `n` of them; false: there are none. */
bool coverage_put_gaps(Buffer *out, const PdCoverage *coverage, size_t n);
