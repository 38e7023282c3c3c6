/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Whose samples they are: counts by comm and dso, as perf script names them; where versions of perf
 * differ (samples after the EXIT of their own thread) as those since 6.12 do.
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

/* Each record of the recording with its stamp; then finish. */
int attribution_add(Attribution *attribution, const PdRecord *record, const PdStamp *stamp);
int attribution_finish(Attribution *attribution);

/* After finish: the most frequent first, equals by name; at most n of them. The bytes belong to the
 * attribution. How many were filled in, or -ENOMEM. */
int attribution_top_comms(const Attribution *attribution, Share *ret, size_t n);
int attribution_top_dsos(const Attribution *attribution, Share *ret, size_t n);
/* Samples that found no row because there were too many distinct ones. */
uint64_t attribution_uncounted(const Attribution *attribution);
