/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Keeps the samples whose innermost frame is in files, functions or source lines that a user named.
 * It needs the names of the frames, so it works on a profile that is already made.
 */

#include "profile/frame-names.h"
#include "profile/profile.h"

/* Words are names or patterns as for fnmatch(). An empty list selects everything; a frame must
 * match a word of each other list. */
typedef struct FrameFilter {
    const char *const *dsos; /* as perf prints them, or the path that was mapped */
    size_t n_dsos;
    const char *const *symbols; /* the function, or one that was inlined there */
    size_t n_symbols;
    const char *const *srclines; /* FILE or FILE:LINE; FILE may lack leading folders */
    size_t n_srclines;
} FrameFilter;

bool frame_filter_is_set(const FrameFilter *filter);
/* Removes all other samples from the profile and counts them as left out. -ENOMEM. */
int frame_filter_apply(const FrameFilter *filter, Profile *profile, const FrameNames *names);
