/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Interned mappings and frames: each distinct one has a number, counted from 0. Numbers stay valid
 * as long as the table; pointers only until something is added.
 */

#include "profile/frame.h"
#include "util/macro.h"

enum { FRAME_MAPPINGS_MAX = 1 << 20, FRAMES_MAX = 1 << 26 };

typedef struct FrameTable FrameTable;

int frame_table_new(FrameTable **ret);
FrameTable *frame_table_free(FrameTable *table);
DEFINE_CLEANUP(FrameTable *, frame_table_free);

/* Copies a new mapping with its names; of equal ones the first one's names are kept. -ENOSPC: there
 * are too many. */
int frame_table_add_mapping(FrameTable *table, const FrameMapping *mapping, uint32_t *ret);
/* Its mapping must be in the table. */
int frame_table_add(FrameTable *table, const Frame *frame, uint32_t *ret);

uint32_t frame_table_n_mappings(const FrameTable *table);
uint32_t frame_table_n_frames(const FrameTable *table);
const FrameMapping *frame_table_mapping(const FrameTable *table, uint32_t number);
const Frame *frame_table_frame(const FrameTable *table, uint32_t number);
