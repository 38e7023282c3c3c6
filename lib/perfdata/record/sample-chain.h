/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A sample whose user stack was unwound becomes an ordinary one with a call chain. */

#include "perfdata/record/record.h"

/*
 * Appends the sample without its registers and its copy of the user stack; the user part of its
 * call chain becomes `addresses`, the innermost first (none: the chain stays as it is). What does
 * not fit into a record is cut off at the outer end. `sample` is what the record was parsed into;
 * it has a call chain.
 */
void pd_sample_append_unwound(Buffer *out, const PdRecord *record, const PdSample *sample,
                              const uint64_t *addresses, size_t n);
/* How many entries precede the user part of a chain: its mark and the addresses behind that. */
uint64_t pd_chain_before_user(const PdCallchain *chain);
