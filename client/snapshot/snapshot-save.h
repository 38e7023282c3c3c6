/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the snapshot commands share. Snapshots are objects from the daemon, escaped already. */

#include <jansson.h>

#include "client/frame/command.h"

/* Shows the progress of the daemon on stderr, if that is a terminal and --quiet is not set. */
typedef struct Progress {
    bool shown; /* a line is shown at present */
    bool wanted;
} Progress;

Progress progress_of(const Context *c);
void progress_show(Progress *progress, const char *phase, uint64_t done, uint64_t total);
void progress_end(Progress *progress);

/* Writes the files of a snapshot to `path`, a file or a folder that appears complete or not at
 * all. */
int snapshot_save(const Context *c, const json_t *snapshot, const char *path, bool force);
/* Writes its only file to stdout; `stream`: in the layout for pipes. */
int snapshot_pass_on(Context *c, const json_t *snapshot, bool stream);

/* One sentence: its length, its session, the number of samples, what is missing. */
void snapshot_describe(Buffer *out, const json_t *snapshot);
/* How many mapped files have no build id; 0 if profd is too old to report it. */
uint64_t snapshot_unidentified(const json_t *snapshot);
/* A perf command that shows the file at `path`, in the form that this user needs. False if the user
 * cannot read it. */
bool snapshot_hint(Buffer *out, const char *path);
