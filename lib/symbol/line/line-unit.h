/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which function of which compilation unit holds an address. Runs in the child. */

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct LineRange {
    uint64_t start, end;
    Dwarf_Die die;
} LineRange;

typedef struct LineUnits {
    LineRange *units; /* of all compilation units */
    size_t n_units;
    bool has_current;
    Dwarf_Die current;    /* the unit of the last address */
    LineRange *functions; /* of that unit */
    size_t n_functions;
} LineUnits;

/* The units last as long as the process. */
bool line_units_init(LineUnits *units, Dwarf *dwarf);
/* Makes the unit of the address the current one, if there is one, and finds its function. */
bool line_units_find(LineUnits *units, uint64_t address, Dwarf_Die *ret);
