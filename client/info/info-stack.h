/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How the stacks of a segment were unwound, in samples. */

#include "client/frame/stack-text.h"
#include "util/fields.h"

/* From the manifest beside the recording. False: it has none, or no stacks were unwound. */
bool info_stacks_read(const char *recording, StackCounts *ret);
/* Adds a member `stacks` to an open object. */
void info_stacks_describe(const StackCounts *stacks, Fields *fields);
