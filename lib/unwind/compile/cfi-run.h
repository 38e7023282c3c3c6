/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Runs the instructions of CIEs and FDEs, which describe how rules change along the code. */

#include "unwind/compile/cfi-entry.h"

/* Takes the rule that holds from pc on: 0, or a negative errno that ends the run. */
typedef int (*CfiRow)(void *userdata, uint64_t pc, const UnwindRule *rule);

/* Sets cie->initial; a CIE with malformed instructions is no longer usable. */
void cfi_run_cie(const CfiSection *section, CfiCie *cie, uint64_t *steps);
/* Emits the rows of a run of code, in order. After a malformed instruction the rest of the run has
 * no rule. *steps counts instructions down; -E2BIG: none are left. */
int cfi_run_fde(const CfiSection *section, const CfiCie *cie, const CfiFde *fde, uint64_t *steps,
                CfiRow on_row, void *userdata);
