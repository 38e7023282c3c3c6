/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Collects rows and rules and makes the image of a table of them. */

#include "unwind/unwind-table.h"
#include "util/buffer.h"
#include "util/hash-index.h"

typedef struct TableBuild {
    uint16_t machine;
    uint64_t base;
    uint32_t span;
    Buffer pcs, rule_of_row; /* u32, u16 */
    Buffer rules;            /* UnwindRule; the first is that of UNWIND_NONE */
    HashIndex index;         /* of the rules */
    uint64_t seed;
    UnwindRule last; /* of the last row */
} TableBuild;

int table_build_init(TableBuild *build, uint16_t machine, uint64_t base, uint32_t span);
void table_build_done(TableBuild *build);
/* The rule holds from pc on, which is not below that of the row before: 0, -ENOMEM, -E2BIG. */
int table_build_row(TableBuild *build, uint64_t pc, const UnwindRule *rule);
/* Appends the image, of at most limit_bytes, to an empty buffer: 0, -ENOMEM, -E2BIG. */
int table_build_image(const TableBuild *build, const UnwindSegment *segments, unsigned n_segments,
                      uint64_t limit_bytes, Buffer *ret);
