/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The names of code that a program generated, out of a file that it wrote for profilers: a perf map
 * or a jitdump. Only what parses is written anew, as lines of a perf map. */

#include "reduce/reduce-source.h"
#include "util/buffer.h"

/* Appends lines "ADDRESS SIZE NAME\n" to the empty buffer, with numbers in hex, at most
 * limit_bytes. -ENODATA: not one line of the file makes sense; -E2BIG: the file is too large;
 * -ENOMEM; or the error of reading. */
int code_map_read(const ReduceSource *source, uint64_t limit_bytes, Buffer *ret);
