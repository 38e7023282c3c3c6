/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the parts of the pprof exporter share. */

#include "encode/gzip.h"
#include "export/export-function.h"
#include "export/export-mapping.h"
#include "export/export-output.h"
#include "export/pprof-part.h"

/* Of a mapping: what its frames say together. */
typedef struct PprofMapping {
    uint32_t id; /* 0: it is not written yet */
    bool unnamed, files, lines, inlined;
    ExportSpan span;
} PprofMapping;

struct Pprof {
    ExportInput input;
    ExportOutput output;
    Gzip *gzip;
    ExportFunctions functions;
    ExportScale samples, period;
    uint32_t *rounds; /* of each node of the stacks, the part that used it last */
    uint32_t round;   /* counts parts */
    Buffer touched;   /* the addresses of ids that a part has set */
    PprofMapping *mappings;
    uint32_t *location_ids, *function_ids;    /* by frame and by function; 0: not written yet */
    uint32_t *name_strings, *profile_strings; /* by text; 0: not written yet */
    uint32_t *event_columns;                  /* the value of each event */
    uint64_t *values;
    uint32_t label_part; /* the part whose labels are written, and their strings */
    uint32_t label_strings[EXPORT_LABELS_MAX][2];
    uint32_t n_columns, n_strings, n_mappings, n_locations, n_functions;
    uint32_t other_location; /* 0: not written yet */
    Buffer text;             /* of a string */
};

/* Sets an id that pprof_reset_ids() sets to 0 again, without a walk over all that could have one.
 */
uint32_t pprof_set_id(Pprof *p, uint32_t *id, uint32_t value);
void pprof_reset_ids(Pprof *p);

/* The number of a string, which is written where it is new. */
uint32_t pprof_string(Pprof *p, const char *text);
uint32_t pprof_name_string(Pprof *p, uint32_t text);
uint32_t pprof_profile_string(Pprof *p, uint32_t text);
uint32_t pprof_bytes_string(Pprof *p, Bytes bytes);
/* Of a label from outside of the profile. */
uint32_t pprof_label_string(Pprof *p, const char *text);

/* Looks at all frames that the stacks of these cells use. */
void pprof_survey_frames(Pprof *p, const ExportCell *cells, size_t n);
/* The location that stands for stacks that were left out. */
uint32_t pprof_other_location(Pprof *p);
/* The id of the location of a frame, which is written with all that it refers to where it is new.
 */
uint32_t pprof_location(Pprof *p, uint32_t frame);
