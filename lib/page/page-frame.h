/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The boxes that a page knows, each distinct one with a number. Frames of one function are one box,
 * or one for each address.
 */

#include "page/page-kind.h"
#include "page/page-input.h"

typedef struct PageFrame {
    uint32_t name, dso; /* texts */
    uint32_t kind;      /* a PageKind, or a FrameKind */
    uint32_t file;      /* source file, a text; 0: not known */
    uint32_t line;
    uint64_t address; /* 0: frames are not kept apart by address */
} PageFrame;

typedef struct PageFrames PageFrames;

int page_frames_new(bool by_address, PageFrames **ret);
PageFrames *page_frames_free(PageFrames *frames);
DEFINE_CLEANUP(PageFrames *, page_frames_free);

uint32_t page_frames_count(const PageFrames *frames);
const PageFrame *page_frames_get(const PageFrames *frames, uint32_t number);
const TextSet *page_frames_texts(const PageFrames *frames);

/* The box of a label, such as a unit. */
int page_frames_add_label(PageFrames *frames, PageKind kind, Bytes name, uint32_t *ret);
/* The box of line `i` of a frame; 0 is the innermost. */
int page_frames_add(PageFrames *frames, const PageInput *input, uint32_t frame, uint32_t i,
                    uint32_t *ret);
/* How many lines a frame has, at least one. */
uint32_t page_frames_lines(const PageInput *input, uint32_t frame);
