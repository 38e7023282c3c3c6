/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The few DWARF expressions that compilers and assembler sources use to say where frames are. */

#include "unwind/unwind-table.h"

/* Sets kind, base, offset and second of a rule; the kind is UNWIND_NONE for an expression that is
 * not known. */
void cfi_expression_cfa(uint16_t machine, Bytes expression, UnwindRule *rule);
/* Where a register is saved, as UnwindRule.saved has it. */
int16_t cfi_expression_saved(uint16_t machine, Bytes expression);
