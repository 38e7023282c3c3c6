/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/line/line-unit.h"

#include <dwarf.h>
#include <stdlib.h>

#include "util/array.h"

/* Not every compiler writes .debug_aranges, so the ranges are taken from the units themselves. */

enum { RANGES_MAX = 16 << 20, DEPTH_MAX = 32 };

static bool line_unit_add(LineRange **ranges, size_t *n, Dwarf_Die *die) {
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;

    while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
        LineRange *row = start < end && *n < RANGES_MAX ? array_grow(ranges, n) : NULL;

        if (start < end && !row)
            return false;
        if (row)
            *row = (LineRange){.start = start, .end = end, .die = *die};
    }
    return true;
}

static int line_unit_compare(const void *a, const void *b) {
    const LineRange *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

static void line_unit_sort(LineRange *ranges, size_t n) {
    if (n > 0)
        qsort(ranges, n, sizeof(*ranges), line_unit_compare);
}

/* The last range that begins before the address, if it holds it. */
static LineRange *line_unit_search(LineRange *ranges, size_t n, uint64_t address) {
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ranges[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && address < ranges[low - 1].end ? &ranges[low - 1] : NULL;
}

bool line_units_init(LineUnits *units, Dwarf *dwarf) {
    Dwarf_CU *unit = NULL;
    Dwarf_Die die, split;
    uint8_t type;

    while (dwarf_get_units(dwarf, unit, &unit, NULL, &type, &die, &split) == 0)
        if ((type == DW_UT_compile || type == DW_UT_skeleton) &&
            !line_unit_add(&units->units, &units->n_units, &die))
            return false;
    line_unit_sort(units->units, units->n_units);
    return true;
}

/* Functions lie in the unit, and in C++ and Rust also in name spaces and types. */
static void line_unit_list(LineUnits *units, Dwarf_Die *parent, unsigned depth) {
    Dwarf_Die child;

    if (depth > DEPTH_MAX || dwarf_child(parent, &child) != 0)
        return;
    do {
        switch (dwarf_tag(&child)) {
        case DW_TAG_subprogram:
            (void)line_unit_add(&units->functions, &units->n_functions, &child);
            break;
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_enumeration_type:
        case DW_TAG_union_type:
            line_unit_list(units, &child, depth + 1);
            break;
        default:
            break;
        }
    } while (dwarf_siblingof(&child, &child) == 0);
}

bool line_units_find(LineUnits *units, uint64_t address, Dwarf_Die *ret) {
    LineRange *unit = line_unit_search(units->units, units->n_units, address), *function;

    if (!unit) {
        units->has_current = false;
        return false;
    }
    if (!units->has_current || units->current.addr != unit->die.addr) {
        free(units->functions);
        units->functions = NULL;
        units->n_functions = 0;
        units->current = unit->die;
        units->has_current = true;
        line_unit_list(units, &units->current, 0);
        line_unit_sort(units->functions, units->n_functions);
    }
    function = line_unit_search(units->functions, units->n_functions, address);
    if (!function)
        return false;
    *ret = function->die;
    return true;
}
