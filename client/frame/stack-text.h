/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How profd unwound the stacks of a session or of a segment: what its counts are called, and what
 * is said of them. See Stacks in io.profd.Control. */

#include "util/buffer.h"

enum { STACK_ROWS = 10 };

typedef struct StackRow {
    const char *name; /* in JSON */
    const char *key;  /* in the manifest of a segment */
    const char *text; /* behind the count; NULL: stacks that are whole, and samples without one */
} StackRow;

typedef struct StackCounts {
    uint64_t samples[STACK_ROWS]; /* by row */
} StackCounts;

extern const StackRow stack_rows[STACK_ROWS];

/* "98.5 % of 1,000 whole; 12 truncated, …"; nothing where no sample has a stack. */
void stack_text_put(Buffer *out, const StackCounts *counts);
