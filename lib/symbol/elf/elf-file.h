/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An open ELF file: of a descriptor, or of bytes in memory. */

#include "reduce/elf-view.h"
#include "util/macro.h"

enum { ELF_BUILD_ID_MAX = 20 };

typedef struct ElfBuildId {
    uint8_t size; /* 0: none */
    uint8_t bytes[ELF_BUILD_ID_MAX];
} ElfBuildId;

typedef struct ElfFile ElfFile;

/* Takes the descriptor, also when it fails. The errors are those of elf_view_open(). */
int elf_file_new(int fd, ElfFile **ret);
/* The bytes are borrowed. */
int elf_file_new_in_memory(Bytes bytes, ElfFile **ret);
ElfFile *elf_file_free(ElfFile *file);
DEFINE_CLEANUP(ElfFile *, elf_file_free);

const ElfView *elf_file_view(const ElfFile *file);
/* -1: it is in memory. */
int elf_file_fd(const ElfFile *file);
/* The bytes in memory, borrowed; empty: it is of a descriptor. */
Bytes elf_file_bytes(const ElfFile *file);
/* The build id that is a note of the file. */
ElfBuildId elf_file_build_id(const ElfFile *file);
/* The same in a run of notes. */
bool elf_notes_find_id(Bytes notes, size_t align, bool swap, ElfBuildId *ret);
