/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Explains a selection that no sample passes. */

#include "perfdata/record/record.h"
#include "process/selection.h"
#include "util/buffer.h"
#include "util/near.h"

enum { MISMATCH_COMMS = 64, MISMATCH_COMM_MAX = 16 };

typedef struct MismatchGroup {
    uint64_t id;
    char *path;
    bool offered;
} MismatchGroup;

typedef struct Mismatch {
    unsigned passed; /* the filters that some sample passes */
    MismatchGroup *groups;
    size_t n_groups;
    char comms[MISMATCH_COMMS][MISMATCH_COMM_MAX]; /* seen lately, by their hash */
    NearNames near_comms, near_groups;
} Mismatch;

/* A group that is not wanted. -ENOMEM. */
int mismatch_add_group(Mismatch *mismatch, const PdCgroup *cgroup);
/* A sample that is not wanted: the filters that it passes, and what it is of. */
void mismatch_add_sample(Mismatch *mismatch, const Selection *selection, unsigned passed,
                         Bytes comm, uint64_t cgroup);
/* Which filters match nothing: "cgroup 'shop.service'", without a NUL. Returns the names that were
 * probably meant. */
const NearNames *mismatch_describe(const Mismatch *mismatch, const Selection *selection,
                                   Buffer *out);
void mismatch_done(Mismatch *mismatch);
