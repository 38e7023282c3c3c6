/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Words for a shell: of a command that is printed to be run, or sent to be. */

#include "util/buffer.h"

/* A word of n bytes, quoted where a shell would take it for more than it is. */
void shell_put_word(Buffer *out, const char *word, size_t n);
