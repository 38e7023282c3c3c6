/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Helpers for files; each succeeds completely or fails. */

#include <stddef.h>

#include "util/macro.h"

/* Reads up to size - 1 bytes, terminates them with NUL and drops a final newline; returns the
 * length. -EFBIG if there is more. */
int file_read_text(const char *path, char *ret, size_t size);
/* The same, and does not wait for the other end of a FIFO: what is no regular file is -EISDIR or
 * -EINVAL. */
int file_read_regular(const char *path, char *ret, size_t size);
/* Writes all n bytes, or returns a negative errno; waits for a descriptor that would block. */
int file_write_all(int fd, const void *data, size_t n);
/* The same by pwrite(). */
int file_write_all_at(int fd, const void *data, size_t n, uint64_t offset);
/* Reads up to n bytes at the offset from a descriptor, an int that `fd` points to; 0 at the end. */
int64_t file_read_at(void *fd, uint64_t offset, void *to, size_t n);
/* Opens a file for reading and writing that has no name, so it ends with its descriptor. */
int file_open_unnamed(const char *folder);
/* Like mkdir -p, with this mode for each folder that it creates. */
int file_make_folders(const char *path, unsigned mode);
