/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How the stacks of a segment were unwound, in samples; see Stacks in io.profd.Control. */

#include "util/fields.h"

typedef struct InfoStacks {
    uint64_t whole, truncated, pending, refused, no_rule, anonymous, no_code, stuck, bits32,
        no_user;
} InfoStacks;

/* From the manifest beside the recording. False: it has none, or no stacks were unwound. */
bool info_stacks_read(const char *recording, InfoStacks *ret);
void info_stacks_print(const InfoStacks *stacks, Buffer *out);
/* Adds a member `stacks` to an open object. */
void info_stacks_describe(const InfoStacks *stacks, Fields *fields);
