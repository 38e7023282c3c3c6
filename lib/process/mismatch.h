/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Explains why no sample matches a selection. */

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
    unsigned passed; /* the filters that at least one sample passes */
    MismatchGroup *groups;
    size_t n_groups;
    char comms[MISMATCH_COMMS][MISMATCH_COMM_MAX]; /* recently seen names, indexed by their hash */
    NearNames near_comms, near_groups;
} Mismatch;

/* Notes a group that does not match. -ENOMEM. */
int mismatch_add_group(Mismatch *mismatch, const PdCgroup *cgroup);
/* Notes a sample that does not match: the filters that it passes, and its thread name and group. */
void mismatch_add_sample(Mismatch *mismatch, const Selection *selection, unsigned passed,
                         Bytes comm, uint64_t cgroup);
/* Appends the filters that match nothing, like "cgroup 'shop.service'", without a NUL. Returns
 * similar names. */
const NearNames *mismatch_describe(const Mismatch *mismatch, const Selection *selection,
                                   Buffer *out);
void mismatch_done(Mismatch *mismatch);
