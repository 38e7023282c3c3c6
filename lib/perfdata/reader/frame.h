/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Records out of the middle of a file that we wrote ourselves: each COMPRESSED record holds whole
 * records, so whoever knows where one begins, from an index, can read from there. Also of a file
 * that is still being written.
 */

#include "perfdata/record/record.h"
#include "util/macro.h"

typedef struct PdFrames PdFrames;

/* The descriptor is taken over on success. */
int pd_frames_new(int fd, PdFrames **ret);
PdFrames *pd_frames_free(PdFrames *frames);
DEFINE_CLEANUP(PdFrames *, pd_frames_free);

/* What is read next: from a record's offset, up to the end. */
void pd_frames_seek(PdFrames *frames, uint64_t offset, uint64_t end);
/* As pd_reader_next(), valid until the next call; -EBADMSG where there is no whole record. */
int pd_frames_next(PdFrames *frames, PdRecord *ret);
/* The COMPRESSED record that the last one came out of, valid as long as that; empty: it lay plain
 * in the file. */
Bytes pd_frames_packed(const PdFrames *frames);
/* 1: that was all of it, 0, or negative errno. The last record is then no longer valid. */
int pd_frames_is_spent(PdFrames *frames);
