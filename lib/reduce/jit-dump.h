/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A jitdump: the records of a program about the code that it generates, with that code. */

#include "reduce/code-line.h"
#include "reduce/reduce-source.h"

bool jit_dump_is(const ReduceSource *source);
/* Adds a line for each function that was loaded; the code is not read. The errors are those of
 * code_map_read(). */
int jit_dump_read(const ReduceSource *source, CodeLines *lines);
