/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a box of a picture stands for: the kinds of frames, then a function that was inlined, then
 * the labels of a profile, which become boxes below the stacks.
 */

#include "profile/frame.h"

typedef enum PageKind {
    PAGE_INLINED = FRAME_KINDS,
    PAGE_UNIT,
    PAGE_CONTAINER,
    PAGE_CGROUP,
    PAGE_COMMAND,
    PAGE_PROCESS,
    PAGE_THREAD,
    PAGE_CPU,
    PAGE_KINDS,
} PageKind;

/* By number: the word that scripts and readers know it by. */
extern const char *const page_kind_names[PAGE_KINDS];
