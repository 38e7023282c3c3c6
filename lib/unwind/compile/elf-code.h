/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where an ELF file has its code and its unwind information. */

#include "unwind/compile/unwind-source.h"
#include "unwind/unwind-table.h"

typedef struct ElfFrames {
    uint64_t offset, size; /* in the file; size 0: there are none */
    uint64_t address;      /* of the first byte */
    bool ends_with_zero;   /* the size is only the most that it can be */
} ElfFrames;

typedef struct ElfCode {
    uint16_t machine;
    unsigned n_segments;
    UnwindSegment segments[UNWIND_SEGMENTS_MAX]; /* executable ones */
    uint64_t base;                               /* the lowest address of them */
    uint32_t span;                               /* to the last address of them */
    ElfFrames eh_frame, debug_frame;
    bool has_compressed; /* .debug_frame, which we do not read */
} ElfCode;

/* 0, or as unwind_compile(). */
int elf_code_read(const UnwindSource *source, ElfCode *ret);
/* Exactly n bytes: 0, -EBADMSG where the file ends before, or what reading failed with. */
int elf_code_bytes(const UnwindSource *source, uint64_t offset, void *to, size_t n);
/* Whether all of [begin, begin + size) lies in one executable segment. */
bool elf_code_has(const ElfCode *code, uint64_t begin, uint64_t size);
