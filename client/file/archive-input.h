/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reads what `profctl archive` made: a recording, and below .build-id the files that name its code,
 * laid out as perf's build-id cache.
 */

#include "util/macro.h"

/* What an archive may hold is bounded, whatever its names and sizes are. */
enum { ARCHIVE_FILES_MAX = 1 << 16 };

/* The name of the recording in an archive. */
#define ARCHIVE_RECORDING "perf.data"

/* Whether a file is an archive, by its beginning: 1, 0, or a negative errno. */
int archive_is(const char *path);
/* The recording of an archive, as an unlinked file at its beginning: 0, -ENOENT if it holds none,
 * -EBADMSG if it is damaged, -EFBIG, or another negative errno. */
int archive_open_recording(const char *path, int *ret_fd);

/* A private folder with the files that name code. It is removed when it is freed, or when a signal
 * ends the program. */
typedef struct ArchiveFolder ArchiveFolder;

/* The errors are those of archive_open_recording(), without -ENOENT. */
int archive_unpack(const char *path, ArchiveFolder **ret);
ArchiveFolder *archive_folder_free(ArchiveFolder *folder);
DEFINE_CLEANUP(ArchiveFolder *, archive_folder_free);
/* Holds .build-id. */
const char *archive_folder_path(const ArchiveFolder *folder);
