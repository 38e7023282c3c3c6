/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the build id in an ELF file of any class and byte order; the file may be hostile. */

#include "util/bytes.h"

enum { BUILD_ID_SIZE_MAX = 20 }; /* the space in an MMAP2 record */

typedef struct BuildId {
    size_t size; /* 0: none */
    uint8_t bytes[BUILD_ID_SIZE_MAX];
} BuildId;

/* The source of an ELF file: reads n bytes at an offset, fewer at the end of the file. */
typedef struct ElfSource {
    int64_t (*read)(void *userdata, uint64_t offset, void *to, size_t n);
    void *userdata;
} ElfSource;

/* 0; -ENODATA: it has none that fits; -ENOEXEC: it is no ELF file; or the error of reading. */
int elf_build_id(const ElfSource *source, BuildId *ret);
int elf_build_id_of_fd(int fd, BuildId *ret);
/* The build id in a run of notes, as sysfs has them for the kernel and modules; or -ENODATA. */
int elf_notes_build_id(Bytes notes, size_t align, bool swap, BuildId *ret);
