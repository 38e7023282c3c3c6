/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The build id in an ELF file of any class and byte order, of which nothing is believed. */

#include "util/bytes.h"

enum { BUILD_ID_SIZE_MAX = 20 }; /* what an MMAP2 has room for */

typedef struct BuildId {
    size_t size; /* 0: none */
    uint8_t bytes[BUILD_ID_SIZE_MAX];
} BuildId;

/* Where an ELF file comes from: n bytes at an offset, fewer at the end of the file. */
typedef struct ElfSource {
    int64_t (*read)(void *userdata, uint64_t offset, void *to, size_t n);
    void *userdata;
} ElfSource;

/* 0, -ENODATA: it has none that we could keep, -ENOEXEC: it is no ELF file, or what reading failed
 * with. */
int elf_build_id(const ElfSource *source, BuildId *ret);
int elf_build_id_of_fd(int fd, BuildId *ret);
/* The build id in a run of notes, as sysfs shows those of kernel and modules; or -ENODATA. */
int elf_notes_build_id(Bytes notes, size_t align, bool swap, BuildId *ret);
