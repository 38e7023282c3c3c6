/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Adds up profiles, such as the slices of a stream: their frames, stacks, texts, events and labels
 * get numbers of one profile, and cells are handed over with these numbers. The cells of the sum
 * are the caller's business, who may want to leave some out again later.
 */

#include "profile/profile.h"
#include "util/hash-index.h"

typedef struct ProfileMerge {
    Profile *into; /* without cells */
    HashIndex labels;
} ProfileMerge;

/* `keys`: the labels that the sum keeps apart; `stacks_max`: nodes of the tree of stacks. */
int profile_merge_init(ProfileMerge *merge, unsigned keys, uint32_t stacks_max);
void profile_merge_done(ProfileMerge *merge);

/* The cells of a profile in numbers of the sum, for the caller to free. -ENOSPC: there are too many
 * stacks, and what was added so far stays. */
int profile_merge_cells(ProfileMerge *merge, const Profile *from, const ProfileCell *cells,
                        size_t n, ProfileCell **ret);

/* Makes one cell of those with equal label and stack, in place; returns their number. */
size_t profile_cells_unite(ProfileCell *cells, size_t n);
