/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the verbs of snapshots share. Snapshots are objects as the daemon sent them, safe to show.
 */

#include <jansson.h>

#include "client/frame/command.h"

/* How far the daemon is, on stderr where that is a terminal and nobody asked for quiet. */
typedef struct Progress {
    bool shown; /* something stands there */
    bool wanted;
} Progress;

Progress progress_of(const Context *c);
void progress_show(Progress *progress, const char *phase, uint64_t done, uint64_t total);
void progress_end(Progress *progress);

/* Writes the files of a snapshot to `path`, a file or a folder that appears whole or not at all. */
int snapshot_save(const Context *c, const json_t *snapshot, const char *path, bool force);
/* Its one file to stdout; `stream`: in the layout that readers of a pipe want. */
int snapshot_pass_on(Context *c, const json_t *snapshot, bool stream);

/* One sentence: how long, of what, how many samples, what is missing. */
void snapshot_describe(Buffer *out, const json_t *snapshot);
/* How many of its files have no build id; 0 where profd is older and does not say. */
uint64_t snapshot_unidentified(const json_t *snapshot);
/* The perf that shows what lies at `path`, as the one who asked has to write it. False where he
 * cannot read it. */
bool snapshot_hint(Buffer *out, const char *path);
