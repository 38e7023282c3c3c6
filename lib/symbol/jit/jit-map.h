/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "symbol/table/name-build.h"

/* Adds the names of a perf map or jitdump, which may be of anybody: 0, -ENODATA if it has none,
 * -ENOMEM, or the error of reading. */
int jit_map_read(int fd, NameBuild *build);
/* The same as lines, into an empty buffer. */
int jit_map_read_lines(int fd, Buffer *ret);
/* Adds lines as code_map_read() makes them. */
int jit_map_add(Bytes lines, NameBuild *build);
