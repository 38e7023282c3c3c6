/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Leaves out the samples of a profile by what their frames are called. */

#include "profile/frame-names.h"
#include "profile/profile.h"

/* Patterns as for fnmatch(); an empty list matches all. When both are set, one frame must match
 * both. */
typedef struct FrameFilter {
    const char *const *dsos;
    size_t n_dsos;
    const char *const *symbols;
    size_t n_symbols;
    bool anywhere; /* any frame of the stack may match, else the innermost one must */
} FrameFilter;

/* Removes the cells that do not match; their samples count as left out. -ENOMEM: nothing was
 * removed. */
int frame_filter_apply(Profile *profile, const FrameNames *names, const FrameFilter *filter);
