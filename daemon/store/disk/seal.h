/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Hands finished files to their readers. The keeper changes owner and group, since the recorder has
 * no right to; a sealed file no longer belongs to the recorder. Usable from any thread.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include "store/disk/segment-name.h"

/* Changes the owner of a finished file or folder, a manifest, or a folder on the path to them.
 * `sensitive`: it holds other users' memory. */
typedef int (*SealFunction)(void *userdata, int fd, bool sensitive);

typedef struct Seal {
    SealFunction give; /* NULL: files keep their owner */
    void *userdata;
    const char *store_path; /* for the log; borrowed */
    atomic_bool is_warned;
    atomic_bool keeps_owner; /* profd has no right to change owners */
} Seal;

/* Hands a file or folder to its readers; logs a warning if that fails. fd may be -1. */
void seal_give(Seal *seal, int fd, const char *what, bool sensitive);
/* The same for a file, or for a folder and each file in it. */
void seal_recording(Seal *seal, int folder, const char *name, bool directory, bool sensitive);
/* Whether a finished file, or a folder that contains one, still belongs to the recorder. */
bool seal_is_missing(const Seal *seal, int folder, const char *name, bool directory);
/* The same for a segment or its manifest. */
bool seal_is_missing_segment(const Seal *seal, int folder, const SegmentName *name, bool directory);
