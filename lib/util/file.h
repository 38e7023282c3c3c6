/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Small things with files, each whole or not at all. */

#include <stddef.h>

#include "util/macro.h"

/* Reads up to size - 1 bytes, ends them with NUL and drops a last newline; the length. -EFBIG when
 * there is more. */
int file_read_text(const char *path, char *ret, size_t size);
/* All n bytes or a negative errno; a descriptor that would block is waited for. */
int file_write_all(int fd, const void *data, size_t n);
/* The same by pwrite(). */
int file_write_all_at(int fd, const void *data, size_t n, uint64_t offset);
/* mkdir -p with the mode for each folder made. */
int file_make_folders(const char *path, unsigned mode);
