/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Quotes words for a shell, in commands that are printed or sent to another host. */

#include "util/buffer.h"

/* Appends a word of n bytes, quoted if a shell would interpret it. */
void shell_put_word(Buffer *out, const char *word, size_t n);
