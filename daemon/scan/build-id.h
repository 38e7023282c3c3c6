/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The build id of a file that a process has mapped, has had mapped, or has deleted. */

#include "process/history.h"
#include "scan/elf-note.h"
#include "scan/process.h"

typedef struct BuildIdReader BuildIdReader;

/* Borrows both. */
int build_id_reader_new(Keeper *keeper, ProcessReader *processes, BuildIdReader **ret);
BuildIdReader *build_id_reader_free(BuildIdReader *reader);
DEFINE_CLEANUP(BuildIdReader *, build_id_reader_free);

/* What is looked for; `path` may be any. */
typedef struct MappedImage {
    uint32_t pid;
    uint64_t start;
    uint32_t major, minor;
    uint64_t inode, generation; /* 0: not known */
    const char *path;
} MappedImage;

/* 0; -ENODATA: it has none; any other: it could not be had, or not for certain. */
int build_id_reader_read(BuildIdReader *reader, const MappedImage *image, BuildId *ret);
