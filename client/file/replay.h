/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A recording lived through again: its side-band goes into a process table in order of time, and
 * each sample is shown at its own moment, when the table says what was true then.
 */

#include "perfdata/reader/reader.h"
#include "process/table/table.h"

typedef struct ReplaySample {
    uint32_t pid, tid; /* UINT32_MAX where the sample has none */
    uint64_t ip;       /* 0 likewise */
    unsigned cpumode;
} ReplaySample;

typedef int (*ReplaySink)(ProcessTable *table, const ReplaySample *sample, void *arg);

typedef struct Replay Replay;

/* `limits` are the table's (NULL: the defaults). The reader must stay; nothing has been read from
 * it yet. A negative return of the sink ends the replay with it. */
int replay_new(PdReader *reader, const ProcessLimits *limits, ReplaySink sink, void *arg,
               Replay **ret);
Replay *replay_free(Replay *replay);
DEFINE_CLEANUP(Replay *, replay_free);

/* Each record of the recording, as it is read, with its stamp. */
int replay_add(Replay *replay, const PdRecord *record, const PdStamp *stamp);
/* After the last one. */
int replay_finish(Replay *replay);

ProcessTable *replay_table(Replay *replay);
