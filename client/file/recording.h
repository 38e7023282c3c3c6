/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Recordings as commands meet them: a path or "-", and the words for what is wrong with one. */

#include "client/frame/command.h"
#include "perfdata/reader/reader.h"

/* Opens a path, or stdin for "-". Complains and returns STATUS_FAILED, else STATUS_OK. */
int recording_open(const char *path, PdReader **ret);

/* What reading to the end came to: STATUS_PARTIAL, and why on stderr, when the recording is
 * damaged or was never finished; else STATUS_OK. `more` is damage that the reader cannot know of,
 * as of a feature's body; NULL or an empty text: none. */
int recording_verdict(const char *path, const PdReader *reader, const PdDamage *more);

/* "standard input" for "-". */
const char *recording_name(const char *path);

/* Whether a word of --event means an event of this name, with or without modifiers: "cycles" also
 * means "cycles:u". * and ? match. */
bool recording_event_matches(const char *word, const char *name);

/* "file", "pipe", "directory" */
const char *recording_mode_name(PdMode mode);
