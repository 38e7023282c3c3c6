/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The scanner's connection to profd-elf, which is started when it is needed, and again when it has
 * ended. */

#include "elf/note.h"
#include "keeper/request/keeper-client.h"
#include "scan/cache/mapped-table.h"

typedef struct ElfHelper ElfHelper;

/* Borrows the keeper and proc, a descriptor of /proc. */
int elf_helper_new(Keeper *keeper, int proc, ElfHelper **ret);
ElfHelper *elf_helper_free(ElfHelper *helper);
DEFINE_CLEANUP(ElfHelper *, elf_helper_free);

/*
 * 0; -ENODATA: the file has none; -ENOEXEC: it is no ELF file; -ECANCELED: the helper died of it,
 * and would again; -ETIMEDOUT: its file system does not answer; -EAGAIN: the helper was killed by
 * somebody, or is not to be started before elf_helper_ready_ns(), or has no room, so ask again; or
 * another error, of a table those of unwind_compile().
 */
int elf_helper_build_id(ElfHelper *helper, int fd, BuildId *ret);
int elf_helper_table(ElfHelper *helper, int fd, MappedTable **ret);
/* The same for what names the code of a file: its build id, and its reduced copy in a sealed memfd
 * of *ret_size bytes. -ENODATA: it has no build id, or no names. */
int elf_helper_symbols(ElfHelper *helper, int fd, BuildId *ret_id, int *ret_fd, uint64_t *ret_size);
/* The same for a file in which a program names the code that it generates. */
int elf_helper_code_map(ElfHelper *helper, int fd, int *ret_fd, uint64_t *ret_size);
/* When it can be used again, in CLOCK_MONOTONIC. */
uint64_t elf_helper_ready_ns(const ElfHelper *helper);
/* Whether it could not be started last time, or always ends before it answers. */
bool elf_helper_is_missing(const ElfHelper *helper);
/* The CPU time of all its processes so far. */
uint64_t elf_helper_cpu_ns(const ElfHelper *helper);
