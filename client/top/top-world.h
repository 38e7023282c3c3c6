/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What `top` remembers: slices of time, whose samples share frames, stacks and names, so that any
 * window of them is a profile. Old slices are united to longer ones, and the oldest are dropped:
 * memory has a bound.
 */

#include "perfdata/feature/coverage.h"
#include "profile/frame-names.h"
#include "profile/profile-merge.h"

enum {
    TOP_HOUR_S = 3600,
    TOP_STACKS_MAX = 1 << 21,
    TOP_CELLS_MAX = 1 << 22,
};

typedef struct TopSlice {
    uint64_t from_ns, to_ns; /* times of the recording */
    ProfileCell *cells;
    size_t n_cells;
    uint64_t lost;
} TopSlice;

typedef struct TopWorld {
    ProfileMerge merge; /* the profile that top_world_select() fills */
    FrameNames *names;  /* of its frames; NULL: they were numbered anew */
    TopSlice *slices;   /* the oldest first */
    size_t n_slices, n_cells;
    uint64_t begin_ns, end_ns; /* what is known completely; 0: nothing yet */
    uint32_t stacks_max;       /* bounds, smaller in tests */
    size_t cells_max;
    PdCoverage gaps;      /* times of the recording */
    uint64_t lost;        /* samples that the kernel dropped, of the selected slices */
    size_t n_gaps;        /* in the selected span */
    uint64_t recorded_ns; /* of the selected span, by any CPU */
} TopWorld;

int top_world_init(TopWorld *world, unsigned keys, uint32_t stacks_max, size_t cells_max);
void top_world_done(TopWorld *world);

/* Adds samples to the slices of their times, if the profile keeps these apart, else to one slice.
 * Each sample older than `complete_ns` has come by now. */
int top_world_add(TopWorld *world, const Profile *profile, uint64_t complete_ns);
/* Notes what was not recorded, also before the first sample comes. What is before the begin is
 * forgotten when that is known. -ENOMEM. */
int top_world_note_gap(TopWorld *world, const PdGap *gap);
/* Fills the profile with the samples of the slices that end in this span, since < end <= until, and
 * sets its times. -ENOMEM. */
int top_world_select(TopWorld *world, uint64_t since_ns, uint64_t until_ns);
