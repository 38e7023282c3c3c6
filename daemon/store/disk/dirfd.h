/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Small files and segments inside an open folder. Nothing here follows a symbolic link or waits
 * for a FIFO: whoever can write into the store gets nowhere with either.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "util/buffer.h"
#include "util/bytes.h"

#define DIRFD_SCRATCH ".tmp" /* behind `.NAME`, while NAME is written */

enum { DIRFD_FOLDER_MODE = 0750, DIRFD_FILE_MODE = 0640 };

/* A regular file for reading: its descriptor, or a negative errno (-EBADMSG: it is none). */
int dirfd_open_file(int folder, const char *name, struct stat *ret_st);
/* A regular file, whole: -EFBIG above `max` bytes, -EBADMSG for what is no regular file. */
int dirfd_read(int folder, const char *name, size_t max, Buffer *ret);
/* The same of one that is open. */
int dirfd_read_fd(int fd, size_t max, Buffer *ret);
/* The file, synced, under its name or as it was before. */
int dirfd_write(int folder, const char *name, Bytes bytes);

/* A folder below `parent`, made where it lacks. */
int dirfd_open_folder(int parent, const char *name, int *ret_fd);

/* A file of a recording for reading: `file` is "" (the recording itself, or its `data`), "data" or
 * "data.N"; -ENOENT: it has none of that name. */
int dirfd_open_part(int folder, const char *name, bool directory, const char *file, int *ret_fd,
                    uint64_t *ret_bytes);

/* What a file, or a folder with all the files in it, takes on the disk, and whether it is a folder.
 * -EBADMSG: it is neither. */
int dirfd_measure(int folder, const char *name, uint64_t *ret_bytes, bool *ret_is_folder);
/* Deletes a file, or a folder with the files in it. */
int dirfd_remove(int folder, const char *name);
/* A new name that nothing has (-EEXIST), on file systems that cannot do so in one step too. */
int dirfd_rename(int folder, const char *from, const char *to);
/* Calls fn with each regular file of a folder, opened for reading; stops at a negative errno. */
int dirfd_each_file(int folder, int (*fn)(void *userdata, const char *name, int fd),
                    void *userdata);
