/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Counts samples by comm and dso, with the names that perf script prints; where versions of perf
 * differ (samples after the EXIT of their own thread), those of perf 6.12 and newer.
 */

#include "client/file/replay.h"

typedef struct Share {
    Bytes comm, dso;
    uint64_t samples;
} Share;

typedef struct Attribution Attribution;

int attribution_new(PdReader *reader, Attribution **ret);
Attribution *attribution_free(Attribution *attribution);
DEFINE_CLEANUP(Attribution *, attribution_free);

/* Add each record of the recording with its stamp; then call finish. */
int attribution_add(Attribution *attribution, const PdRecord *record, const PdStamp *stamp);
int attribution_finish(Attribution *attribution);

/* After finish: the most frequent ones first, ties by name; at most n. The bytes belong to the
 * attribution. Returns the number, or -ENOMEM. */
int attribution_top_comms(const Attribution *attribution, Share *ret, size_t n);
int attribution_top_dsos(const Attribution *attribution, Share *ret, size_t n);
/* Samples without a row because there were too many distinct ones. */
uint64_t attribution_uncounted(const Attribution *attribution);
