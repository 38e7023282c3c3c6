/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Samples that bring registers and a copy of the user stack become samples with a call chain. The
 * unwinder belongs to the main thread. It reads no file and waits for nothing: a table that is not
 * there yet is asked for, and the samples until then are unwound by frame pointers.
 */

#include "process/history/history.h"
#include "scan/cache/table-cache.h"
#include "unwind/unwind.h"

typedef struct Unwinder Unwinder;

/* How many samples had which verdict. */
typedef struct UnwinderCounts {
    uint64_t samples[UNWIND_VERDICTS];
} UnwinderCounts;

/* Borrows both. */
int unwinder_new(History *history, TableCache *tables, Unwinder **ret);
Unwinder *unwinder_free(Unwinder *unwinder);
DEFINE_CLEANUP(Unwinder *, unwinder_free);

/*
 * Appends the records with their samples unwound. `taken` are the events as the records have them,
 * `stored` the same ones as the recording has them. A sample without a user stack is copied, and so
 * is one of an event that stores it. The side-band up to the samples is in the history.
 * Returns how many samples were left out because they are of no event of the session, or do not
 * hold what their event announces.
 */
size_t unwinder_take(Unwinder *unwinder, const PdEvents *taken, const PdEvents *stored,
                     Bytes records, Buffer *out, UnwinderCounts *counts);
