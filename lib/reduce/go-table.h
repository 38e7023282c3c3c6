/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The functions of a Go program from its .gopclntab, which a stripped program still has. */

#include "reduce/symbol-table.h"

/* Adds them: 0, also if the file is of no Go program or of an unknown version; -ENOMEM, -E2BIG, or
 * the error of reading. */
int go_table_read(SymbolTable *table);
