/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the parts of the pprof exporter share. */

#include "encode/gzip.h"
#include "export/export-cell.h"
#include "export/export-function.h"
#include "export/export-output.h"

/* Of a mapping: what its frames say together. */
typedef struct PprofMapping {
    uint32_t id; /* 0: it is not written yet */
    bool used, unnamed, files, lines, inlined;
    uint64_t lowest, highest; /* addresses */
} PprofMapping;

typedef struct Pprof {
    const ExportInput *input;
    ExportOutput output;
    Gzip *gzip;
    ExportFunctions functions;
    PprofMapping *mappings;
    uint32_t *location_ids, *function_ids;    /* by frame and by function; 0: not written yet */
    uint32_t *name_strings, *profile_strings; /* by text; 0: not written yet */
    uint32_t *event_columns;                  /* the value of each event */
    uint64_t *values;
    uint32_t n_columns, n_strings, n_mappings, n_locations, n_functions;
    Buffer text; /* of a string */
} Pprof;

/* The number of a string, which is written where it is new. */
uint32_t pprof_string(Pprof *p, const char *text);
uint32_t pprof_name_string(Pprof *p, uint32_t text);
uint32_t pprof_profile_string(Pprof *p, uint32_t text);
uint32_t pprof_bytes_string(Pprof *p, Bytes bytes);

/* Looks at all frames that stacks use. */
int pprof_survey_frames(Pprof *p);
/* The id of the location of a frame, which is written with all that it refers to where it is new.
 */
uint32_t pprof_location(Pprof *p, uint32_t frame);
