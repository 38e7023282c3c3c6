/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Keeps what names the code that is sampled: asks for it, and has it written on a thread of its
 * own. All functions are for the main thread. */

#include "binary/binary-watch.h"
#include "keeper/request/keeper-client.h"
#include "loop/loop.h"
#include "store/binary/binary-store.h"
#include "store/folder/housekeeper.h"
#include "tracker/tracker.h"

typedef struct Binaries Binaries;

typedef struct BinariesOptions {
    Keeper *keeper;
    Loop *loop;
    Store *store;
    Tracker *tracker;
} BinariesOptions;

int binaries_new(const BinariesOptions *options, Binaries **ret);
/* The tracker must be freed before, since its thread asks what is kept. Waits a few seconds for our
 * own thread. *ret_is_over: whether it has ended; if not, it still uses the
 * store. */
Binaries *binaries_free(Binaries *binaries, bool *ret_is_over);
/* With a limit of 0 nothing is kept, and what is there is removed. */
void binaries_configure(Binaries *binaries, uint64_t limit_bytes);
/* Samples were deleted: soon removes what names only these. */
void binaries_tend(Binaries *binaries);
/* Sees every sample. */
BinaryWatch *binaries_watch(Binaries *binaries);
/* What the scanner found. */
int binaries_on_symbols(Binaries *binaries, SymbolsAnswer *answer);
int binaries_on_code_map(Binaries *binaries, CodeMapAnswer *answer);

typedef struct BinariesCounts {
    uint64_t failed;    /* files that could not be written, or found no room */
    uint64_t refused;   /* maps of generated code that were not as they must be */
    uint64_t code_maps; /* processes whose map is held open */
} BinariesCounts;

BinariesCounts binaries_counts(const Binaries *binaries);
/* For methods: what is kept, and the thread on which it may be read. */
BinaryStore *binaries_store(Binaries *binaries);
Worker *binaries_thread(Binaries *binaries);
