/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the frames of a profile are called. A frame has one line, or several where functions were
 * inlined: the innermost first, and the function that contains the code last. Names are added in
 * the order of the frames' numbers.
 */

#include "profile/text-set.h"

/* How a name was found, or why there is none. */
typedef enum FrameNaming {
    FRAME_NAMED,    /* by a symbol */
    FRAME_UNNAMED,  /* its file has no symbol there; the text is "file+0xoffset" or "0xaddress" */
    FRAME_NO_FILE,  /* the file is not here; the text as for FRAME_UNNAMED */
    FRAME_REPLACED, /* the file at the path is another one; the text ends in "[replaced]" */
    FRAME_NOWHERE,  /* nothing is mapped there: "[unknown]" */
} FrameNaming;

typedef struct FrameLine {
    uint32_t function; /* numbers in `texts` */
    uint32_t file;     /* source file; 0: not known */
    uint32_t line;     /* 0: not known */
} FrameLine;

typedef struct FrameName {
    uint32_t first, n; /* its lines */
    FrameNaming naming;
    uint64_t start; /* where its symbol starts, as Frame.address; equal to it where there is none */
} FrameName;

typedef struct FrameNames {
    TextSet *texts;
    FrameName *names; /* one for each frame of the profile, by its number */
    size_t n_names;
    FrameLine *lines;
    size_t n_lines;
} FrameNames;

int frame_names_new(FrameNames **ret);
FrameNames *frame_names_free(FrameNames *names);
DEFINE_CLEANUP(FrameNames *, frame_names_free);

/* Adds the name of the next frame; n is at least 1. */
int frame_names_add(FrameNames *names, FrameNaming naming, uint64_t start, const FrameLine *lines,
                    uint32_t n);
/* The function that contains the code of a frame, without what was inlined there. */
Bytes frame_names_function(const FrameNames *names, uint32_t frame);
