/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The side-band of segments, one after the other, told again to a History, so that another
 * recording can be made of their samples. Each segment stands alone: on the first sample of a
 * process it states what the process was. Where the segment before told the same already, only what
 * is new goes on. Within a segment all is judged in the order of its time, whatever its place.
 */

#include "perfdata/event/event.h"
#include "process/history/history.h"
#include "util/macro.h"

typedef struct Retelling Retelling;

/* `table_bytes`: what its History may take; 0: the default. */
int retelling_new(uint64_t table_bytes, Retelling **ret);
Retelling *retelling_free(Retelling *retelling);
DEFINE_CLEANUP(Retelling *, retelling_free);
History *retelling_history(Retelling *retelling);

/* The next segment, of which everything up to `covered_ns` will be fed: what it tells of a process,
 * it tells in full up to there. Its events are borrowed until the next one begins. */
int retelling_begin(Retelling *retelling, const PdEvents *events, uint64_t covered_ns);
/* A record of its side-band, in the order of the file; those before FINISHED_INIT are its preamble.
 * It waits until it is settled. */
int retelling_feed(Retelling *retelling, const PdRecord *record, const PdStamp *stamp);
/* Of this segment all was fed up to that time, so far as samples to come may need it. */
int retelling_settle(Retelling *retelling, uint64_t until_ns);
/* Neither samples nor side-band to come are older. */
void retelling_set_floor(Retelling *retelling, uint64_t ns);
