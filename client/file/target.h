/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The place where a recording is written: a file or a folder that appears complete under its name
 * or not at all, or stdout. Until it is committed it has a temporary name next to its final one,
 * and is removed if the work fails or SIGINT, SIGTERM or SIGHUP ends it.
 */

#include <stdbool.h>

#include "perfdata/writer/writer.h"

typedef struct Target {
    const char *path; /* as given; "-": stdout */
    PdLayout layout;
    bool force;
    int fd; /* to write to: the file, the folder, or stdout */
    char *temporary;
} Target;

/*
 * Opens it. -EEXIST: it exists and may not be replaced; -ENOTEMPTY: a folder that contains other
 * things than a recording; -EINVAL: neither a file nor a folder, or stdout with a layout other than
 * a stream; -ENOTTY: stdout is a terminal.
 */
int target_open(Target *target, const char *path, PdLayout layout, bool force);
/* Syncs it and gives it its final name; replaces what was there before. Errors as above. */
int target_commit(Target *target);
/* Removes it unless it was committed. */
void target_done(Target *target);

/* Explains why target_open() or target_commit() failed; returns STATUS_FAILED. */
int target_complain(const Target *target, int error);
