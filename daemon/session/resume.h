/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the previous recorder had written when it died: the last sample of each CPU, and the state
 * of the processes. A ring gets its space back only after its samples are written. So a ring that
 * we take over may begin with samples that the last segment holds already, and side-band that was
 * drained from it is only in the segment.
 */

#include "perfdata/event/event.h"
#include "process/history/history.h"
#include "util/bytes.h"
#include "util/macro.h"

typedef struct Resume Resume;

int resume_new(Resume **ret);
Resume *resume_free(Resume *resume);
DEFINE_CLEANUP(Resume *, resume_free);

/* Reads a segment to its end, in the order in which it was written, and puts its side-band into the
 * history. */
int resume_read(Resume *resume, const char *path, History *history);
/* No unwritten sample is older than this; UINT64_MAX: nothing was read. */
uint64_t resume_oldest_ns(const Resume *resume);
/* Returns the part of a CPU's records, in ring order, that is not written yet. */
Bytes resume_skip(Resume *resume, const PdEvents *events, unsigned cpu, Bytes records);
/* The same for records that the previous recorder kept beside the rings, oldest first; call it
 * before the rings are read. */
Bytes resume_skip_kept(Resume *resume, const PdEvents *events, unsigned cpu, Bytes records);
/* All of these are known: from now on a ring continues after the last of them. */
void resume_end_kept(Resume *resume);
