/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The unwind table of one ELF file: for each address of its code, the rule that finds the caller.
 * The table is one flat run of bytes without pointers, in the byte order of the host:
 *
 *     UnwindHeader | segments | rules | pages (u32) | pcs (u32) | rules of rows (u16)
 *
 * A row begins at base + pc and holds up to the next row. Rows are sorted by pc. Page p names the
 * first row whose pc is not below p << page_shift, so that a search looks at a few rows only.
 *
 * The process that makes a table has read a stranger's file and may be compromised by it. So the
 * reader bounds each index at its use: a hostile table gives wrong callers and nothing worse. The
 * bytes must not change while they are read: an image that comes from another process is sealed.
 */

#include <assert.h>

#include "unwind/unwind-machine.h"
#include "util/bytes.h"

enum {
    UNWIND_MAGIC = 0x70756e77, /* "wnup" */
    UNWIND_VERSION = 1,
    UNWIND_SEGMENTS_MAX = 64,
};

/* How a rule finds the canonical frame address (CFA), which is the caller's stack pointer. */
typedef enum UnwindKind {
    UNWIND_NONE,   /* not at all: nothing is known of this code */
    UNWIND_OFFSET, /* register + offset */
    UNWIND_DEREF,  /* *(register + offset) + second */
    UNWIND_PLT,    /* register + offset + 8 where the low four bits of the pc are >= second */
    UNWIND_SIGNAL, /* the registers lie in the ucontext that the kernel left on the stack */
    UNWIND_END,    /* there is no caller */
} UnwindKind;

/* Where a register of the caller lies. Other numbers than these are made and read by the functions
 * below: an even one is a distance from the CFA, an odd one a distance from the frame pointer or
 * the number of another register. Distances are multiples of eight. */
enum {
    UNWIND_SAME = 0, /* the callee has not changed it */
    UNWIND_UNKNOWN = INT16_MIN,
    UNWIND_FROM_FRAME_POINTER = 1,
    UNWIND_IN_REGISTER = 1 << 14, /* with the bit of the frame pointer */
};

typedef struct UnwindRule {
    uint8_t kind, base; /* UnwindKind, the number of a register in perf's order */
    int16_t saved[UNWIND_SAVED];
    int32_t offset, second;
} UnwindRule;

/* What lies at the CFA itself is not the callee's to save. */
static inline int16_t unwind_saved_at_cfa(int64_t offset) {
    int64_t saved = offset / 4;

    return offset % 8 != 0 || saved <= INT16_MIN || saved > INT16_MAX ? UNWIND_UNKNOWN
                                                                      : (int16_t)saved;
}

static inline int16_t unwind_saved_at_pointer(int64_t offset) {
    int64_t saved = offset / 4;

    return offset % 8 != 0 || saved <= -UNWIND_IN_REGISTER || saved >= UNWIND_IN_REGISTER
               ? UNWIND_UNKNOWN
               : (int16_t)(saved | UNWIND_FROM_FRAME_POINTER);
}

static inline int16_t unwind_saved_in_register(uint8_t reg) {
    return (int16_t)(UNWIND_IN_REGISTER | reg << 1 | UNWIND_FROM_FRAME_POINTER);
}

static inline bool unwind_saved_is_at_cfa(int16_t saved) {
    return !(saved & UNWIND_FROM_FRAME_POINTER) && saved != UNWIND_SAME && saved != UNWIND_UNKNOWN;
}

/* The register that holds it, or UNWIND_NO_REGISTER. */
static inline uint8_t unwind_saved_register(int16_t saved) {
    return saved & UNWIND_FROM_FRAME_POINTER && saved > UNWIND_IN_REGISTER
               ? (uint8_t)((saved - UNWIND_IN_REGISTER) >> 1)
               : (uint8_t)UNWIND_NO_REGISTER;
}

/* From the CFA, or from the frame pointer. */
static inline int64_t unwind_saved_distance(int16_t saved) {
    return (int64_t)(saved & ~UNWIND_FROM_FRAME_POINTER) * 4;
}

/* An executable PT_LOAD of the file. */
typedef struct UnwindSegment {
    uint64_t offset, size; /* in the file */
    uint64_t address;      /* that the file asks for */
} UnwindSegment;

typedef struct UnwindHeader {
    uint32_t magic;
    uint16_t version, machine; /* EM_X86_64 or EM_AARCH64 */
    uint64_t base;             /* the address, as of the file, that pcs count from */
    uint32_t span;             /* of pcs, less one */
    uint32_t page_shift;
    uint32_t n_segments, n_rules, n_pages, n_rows;
} UnwindHeader;

static_assert(sizeof(UnwindRule) == 24 && sizeof(UnwindSegment) == 24 && sizeof(UnwindHeader) == 40,
              "the image has no padding");

/* A view of an image, which must stay where and as it is. */
typedef struct UnwindTable {
    UnwindHeader header; /* our copy */
    const UnwindSegment *segments;
    const UnwindRule *rules;
    const uint32_t *pages, *pcs;
    const uint16_t *rule_of_row;
} UnwindTable;

/* The number of bytes of an image with this header; 0: no image has such a header. */
uint64_t unwind_image_size(const UnwindHeader *header);

/* 0, or -EBADMSG: the bytes are no image. `image` is aligned to 8. */
int unwind_table_open(Bytes image, UnwindTable *ret);

/* The rule at an address as of the file. A copy, checked: its kind, registers and offsets may be
 * used as they are. UNWIND_NONE where the table knows nothing. */
UnwindRule unwind_table_find(const UnwindTable *table, uint64_t address);

/* What must be subtracted from an address in the mapping [start, start + size) of the file from
 * `offset` on, to have an address as of the file. -ENOENT: no code of the file is mapped there. */
int unwind_table_bias(const UnwindTable *table, uint64_t start, uint64_t size, uint64_t offset,
                      uint64_t *ret_bias);
