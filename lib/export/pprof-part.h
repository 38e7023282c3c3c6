/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Writes parts of one profile, each as a profile of pprof with tables of its own. What the parts
 * share is worked out once.
 */

#include "export/export-cell.h"

typedef struct Pprof Pprof;

typedef struct PprofPart {
    const ExportCell *cells;
    size_t n;
    uint64_t other_samples, other_period; /* of stacks that are left out: one frame "[other]" */
    uint32_t event;                       /* of its values; PROFILE_NONE: those of all events */
    uint64_t since_ns, until_ns;          /* as those of ExportInput */
} PprofPart;

/* Copies the input, but borrows what it points at. */
int pprof_new(const ExportInput *input, Pprof **ret);
Pprof *pprof_free(Pprof *p);
DEFINE_CLEANUP(Pprof *, pprof_free);
int pprof_write(Pprof *p, const PprofPart *part, ExportSink sink, void *arg);
