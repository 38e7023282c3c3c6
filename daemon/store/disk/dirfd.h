/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Small files and segments inside an open folder. No function follows a symbolic link or blocks on
 * a FIFO, so a user who can write into the store cannot use either against us.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "util/buffer.h"
#include "util/bytes.h"

#define DIRFD_SCRATCH ".tmp" /* `.NAME.tmp` holds the new content while NAME is replaced */
enum { DIRFD_SCRATCH_MAX = 256 };

enum { DIRFD_FOLDER_MODE = 0750, DIRFD_FILE_MODE = 0640 };

/* Opens a regular file for reading. Returns a descriptor or a negative errno (-EBADMSG: not a
 * regular file). */
int dirfd_open_file(int folder, const char *name, struct stat *ret_st);
/* Reads a whole regular file: -EFBIG above `max` bytes, -EBADMSG if it is not a regular file. */
int dirfd_read(int folder, const char *name, size_t max, Buffer *ret);
/* The same for an open file. */
int dirfd_read_fd(int fd, size_t max, Buffer *ret);
/* Opens the file that is to replace NAME; the caller writes and syncs it. */
int dirfd_begin_file(int folder, const char *name, char ret_scratch[DIRFD_SCRATCH_MAX]);
/* Puts it into the place of NAME, or removes it if the caller failed (r < 0). Returns r or the
 * error. */
int dirfd_end_file(int folder, const char *name, const char *scratch, int r);
/* Replaces a file atomically and syncs it: afterwards it has either the new or the old content. */
int dirfd_write(int folder, const char *name, Bytes bytes);

/* Opens a folder below `parent` and creates it if it is missing. */
int dirfd_open_folder(int parent, const char *name, int *ret_fd);

/* Opens a file of a recording for reading: `file` is "" (the recording itself, or its `data`),
 * "data" or "data.N"; -ENOENT: it has no such file. */
int dirfd_open_part(int folder, const char *name, bool directory, const char *file, int *ret_fd,
                    uint64_t *ret_bytes);

/* How much a file, or a folder with its files, takes on the disk, and whether it is a folder.
 * -EBADMSG: it is neither. */
int dirfd_measure(int folder, const char *name, uint64_t *ret_bytes, bool *ret_is_folder);
/* Deletes a file, or a folder and the files in it. */
int dirfd_remove(int folder, const char *name);
/* Renames to a name that must not exist (-EEXIST), also on file systems without
 * RENAME_NOREPLACE. */
int dirfd_rename(int folder, const char *from, const char *to);
/* Calls fn with each regular file of a folder, opened for reading; stops when fn returns a negative
 * errno. */
int dirfd_each_file(int folder, int (*fn)(void *userdata, const char *name, int fd),
                    void *userdata);
