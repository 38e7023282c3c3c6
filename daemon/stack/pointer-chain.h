/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The chain that the kernel found by frame pointers, beside one that was unwound. */

#include "perfdata/record/sample.h"
#include "unwind/unwind.h"

/* Where in the kernel's chain the caller of our last frame is; its end: the two chains do not
 * meet. */
uint64_t pointer_chain_rest(const PdCallchain *by_pointer, const UnwindChain *ours);
