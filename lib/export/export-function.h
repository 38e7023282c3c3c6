/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The distinct functions of a profile. Each line of a frame, so also each inlined one, is of a
 * function. */

#include "export/export.h"
#include "util/hash-index.h"

typedef struct ExportFunction {
    uint32_t name, file; /* texts of the names */
    uint32_t mapping;
} ExportFunction;

/* What keeps functions of one name apart. */
typedef enum ExportApart {
    EXPORT_APART_BY_FILE = 1 << 0, /* the source file */
    EXPORT_APART_BY_MAPPING = 1 << 1,
} ExportApart;

typedef struct ExportFunctions {
    ExportFunction *items;
    size_t n;
    HashIndex index;
    uint32_t *of_line; /* the function of each line of the names */
    uint32_t n_lines;  /* those of this profile's frames, from the first */
} ExportFunctions;

void export_functions_done(ExportFunctions *functions);
/* -EINVAL: the names are not those of this profile. */
int export_functions_fill(ExportFunctions *functions, const ExportInput *input, unsigned apart);
