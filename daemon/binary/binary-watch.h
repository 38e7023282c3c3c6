/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Notices which files and processes are sampled whose symbols are to be kept. For the main thread:
 * it looks at each sample, so it reads nothing and waits for nothing. */

#include "perfdata/event/event.h"
#include "process/history/history.h"
#include "scan/cache/mapped-image.h"

typedef struct BinaryWatch BinaryWatch;

typedef struct BinaryWatchSink {
    /* A file is sampled; once in a while for each. */
    void (*on_file)(void *userdata, const MappedImage *image);
    /* A process runs code that is in no file; `dump` is the mapping of its jitdump, or has an end
     * of 0. */
    void (*on_code)(void *userdata, const MappedImage *dump);
    void *userdata;
} BinaryWatchSink;

/* Borrows the history. */
int binary_watch_new(History *history, const BinaryWatchSink *sink, BinaryWatch **ret);
BinaryWatch *binary_watch_free(BinaryWatch *watch);
DEFINE_CLEANUP(BinaryWatch *, binary_watch_free);
void binary_watch_set(BinaryWatch *watch, bool is_on);
/* A sample as it is stored, whose side-band is in the history. */
void binary_watch_see(BinaryWatch *watch, const PdRecord *record, const PdStamp *stamp);
