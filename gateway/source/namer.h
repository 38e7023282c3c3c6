/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Makes intervals of profiles: names their frames, and what Kubernetes calls their groups. All
 * threads share one, since the tables of symbols are the largest part of the gateway's memory.
 */

#include "interval/interval.h"
#include "source/source-link.h"

typedef struct Namer Namer;

typedef struct NamerOptions {
    const char *root;         /* before /var/log: "" except in tests */
    const char *cache_folder; /* of tables of symbols; NULL: none; borrowed */
    bool inlines;
} NamerOptions;

int namer_new(const NamerOptions *options, Namer **ret);
Namer *namer_free(Namer *namer);
DEFINE_CLEANUP(Namer *, namer_free);

/* Asks profd where it keeps symbols of files that are gone, unless that is known. With is_new the
 * daemon may be another one than before. Who gets no answer names without them. */
void namer_ask(Namer *namer, SourceLink *link, bool is_new);
/* Takes the profile over, also on failure. `since` and `until` are CLOCK_REALTIME. */
int namer_make(Namer *namer, Profile *profile, uint64_t since_ns, uint64_t until_ns,
               Interval **ret);
