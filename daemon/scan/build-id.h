/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The build id of a file that a process has mapped, has had mapped, or has deleted. */

#include "elf/note.h"
#include "process/history/history.h"
#include "scan/process.h"

typedef struct BuildIdReader BuildIdReader;

/* Borrows all; proc: a descriptor of /proc. */
int build_id_reader_new(Keeper *keeper, ProcessReader *processes, int proc, BuildIdReader **ret);
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

/* 0; -ENODATA: it has none; -EAGAIN: ask again, after build_id_reader_ready_ns(); any other: it
 * could not be had, or not for certain. */
int build_id_reader_read(BuildIdReader *reader, const MappedImage *image, BuildId *ret);
uint64_t build_id_reader_ready_ns(const BuildIdReader *reader);
/* profd-elf, which reads the files, does not run. */
bool build_id_reader_lacks_elf(const BuildIdReader *reader);
/* What profd-elf has used of the CPU for this reader. */
uint64_t build_id_reader_cpu_ns(const BuildIdReader *reader);
