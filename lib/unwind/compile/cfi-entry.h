/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The entries of a .eh_frame or .debug_frame: CIEs, which hold what functions share, and FDEs, one
 * for each run of code. */

#include "unwind/compile/cfi-read.h"
#include "unwind/unwind-table.h"

typedef struct CfiSection {
    Bytes bytes;
    uint64_t address;
    bool is_debug;       /* .debug_frame */
    bool ends_with_zero; /* the bytes go on behind the entries */
    uint16_t machine;
} CfiSection;

/* What the rows of a run of code are made from. */
typedef struct CfiState {
    UnwindRule rule;
    bool is_end; /* the return address is undefined */
} CfiState;

typedef struct CfiCie {
    uint32_t at; /* offset in the section */
    uint8_t encoding;
    bool is_usable, has_size, is_signal;
    uint64_t code_align;
    int64_t data_align;
    uint64_t return_register;
    Bytes instructions;
    CfiState initial;
} CfiCie;

typedef struct CfiFde {
    uint64_t begin, size; /* of the code, as of the file */
    Bytes instructions;
} CfiFde;

typedef struct CfiEntry {
    uint32_t at;  /* offset in the section */
    uint32_t cie; /* offset of its CIE, in an FDE */
    bool is_cie;
    Bytes body; /* behind the id */
} CfiEntry;

/* Reads the entry at *at and moves *at to the next one. Returns false if there is none, or if it is
 * malformed. */
bool cfi_entry_next(const CfiSection *section, uint32_t *at, CfiEntry *ret);
/* Reads a CIE; is_usable stays false for one that we cannot use. */
CfiCie cfi_entry_cie(const CfiSection *section, const CfiEntry *entry);
bool cfi_entry_fde(const CfiSection *section, const CfiEntry *entry, const CfiCie *cie,
                   CfiFde *ret);
/* The address of a byte of the section. */
uint64_t cfi_section_address(const CfiSection *section, const uint8_t *at);
