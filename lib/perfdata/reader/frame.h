/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reads records from the middle of a file that we wrote ourselves: each COMPRESSED record contains
 * whole records, so reading can start at any of them that an index names. Works for a file that is
 * still being written.
 */

#include "perfdata/record/record.h"
#include "util/macro.h"

typedef struct PdFrames PdFrames;

/* Takes ownership of the descriptor on success. */
int pd_frames_new(int fd, PdFrames **ret);
PdFrames *pd_frames_free(PdFrames *frames);
DEFINE_CLEANUP(PdFrames *, pd_frames_free);

/* Selects what to read next: from a record's offset to the end. */
void pd_frames_seek(PdFrames *frames, uint64_t offset, uint64_t end);
/* Like pd_reader_next(), valid until the next call; -EBADMSG if there is no whole record. */
int pd_frames_next(PdFrames *frames, PdRecord *ret);
/* The COMPRESSED record that contained the last record, valid as long as that one; empty: the
 * record was not compressed. */
Bytes pd_frames_packed(const PdFrames *frames);
/* 1: all records of the COMPRESSED record were returned; 0: not yet; or a negative errno. The last
 * record is no longer valid. */
int pd_frames_is_spent(PdFrames *frames);
