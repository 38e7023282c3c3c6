/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Where a recording is written: a file or a folder that appears whole under its name or not at
 * all, or stdout. Until it is committed it lies under a temporary name beside its place, and that
 * is gone when the work fails or SIGINT, SIGTERM or SIGHUP ends it.
 */

#include <stdbool.h>

#include "perfdata/writer/writer.h"

typedef struct Target {
    const char *path; /* as given; "-": stdout */
    PdLayout layout;
    bool force;
    int fd; /* to be written to: the file, the folder, or stdout */
    char *temporary;
} Target;

/*
 * Opens. -EEXIST: it exists and may not be replaced; -ENOTEMPTY: a folder that holds other things
 * than a recording; -EINVAL: neither a file nor a folder, or stdout with a layout that is no
 * stream; -ENOTTY: stdout is a terminal.
 */
int target_open(Target *target, const char *path, PdLayout layout, bool force);
/* Syncs, and puts it in its place; what was there before is gone then. Errors as above. */
int target_commit(Target *target);
/* Removes what was not committed. */
void target_done(Target *target);

/* Says why target_open() or target_commit() failed; returns STATUS_FAILED. */
int target_complain(const Target *target, int error);
