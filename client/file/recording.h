/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Opens recordings for commands, a path or "-", and words what is wrong with one. */

#include "client/frame/command.h"
#include "perfdata/reader/reader.h"

/* Opens a path, or stdin for "-". Complains and returns STATUS_FAILED, else STATUS_OK. */
int recording_open(const char *path, PdReader **ret);

/* The verdict after reading to the end: STATUS_PARTIAL, with the reason on stderr, if the recording
 * is damaged or was never finished; else STATUS_OK. `more`: damage that the reader cannot detect,
 * such as in a feature's body; NULL or an empty text: none. */
int recording_verdict(const char *path, const PdReader *reader, const PdDamage *more);

/* "standard input" for "-". */
const char *recording_name(const char *path);

/* Whether a word of --event matches an event name, with or without modifiers: "cycles" also matches
 * "cycles:u". * and ? are wildcards. */
bool recording_event_matches(const char *word, const char *name);

/* "file", "pipe", "directory" */
const char *recording_mode_name(PdMode mode);
