/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the parts of the Firefox exporter share. */

#include "export/export-cell.h"
#include "export/export-function.h"
#include "export/export-group.h"
#include "export/export-output.h"
#include "util/fields.h"

typedef struct Firefox {
    const ExportInput *input;
    ExportOutput output;
    Fields fields;
    ExportFunctions functions;
    ExportGroups threads;
    ExportCells cells;    /* by thread and time */
    uint32_t *first_rows; /* in its stack table, of each node of the stacks; then their number */
    uint32_t *source_of;  /* of each text that is a file: its source plus one */
    uint32_t n_sources;
} Firefox;

/* The tables that all threads share: frames, stacks, strings, files. */
int firefox_number_rows(Firefox *f);
void firefox_put_libs(Firefox *f);
void firefox_put_shared(Firefox *f);
