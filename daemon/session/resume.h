/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a recorder before us had written when it died: the last sample of each CPU, and who was
 * what. A ring gives its room back only after its samples are written, so a ring that is taken over
 * may begin with samples that the last segment holds already; and side-band that it drained is in
 * the segment alone.
 */

#include "perfdata/event/event.h"
#include "process/history/history.h"
#include "util/bytes.h"
#include "util/macro.h"

typedef struct Resume Resume;

int resume_new(Resume **ret);
Resume *resume_free(Resume *resume);
DEFINE_CLEANUP(Resume *, resume_free);

/* Reads a segment to its end, in the order in which they were written; its side-band goes into the
 * history. */
int resume_read(Resume *resume, const char *path, History *history);
/* No sample that is not written yet is older; UINT64_MAX: nothing was read. */
uint64_t resume_oldest_ns(const Resume *resume);
/* The part of a CPU's records, in the order of its ring, that is not written yet. */
Bytes resume_skip(Resume *resume, const PdEvents *events, unsigned cpu, Bytes records);
