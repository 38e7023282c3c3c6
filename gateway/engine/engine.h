/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What engines accept: for each a row with its limits and the function that writes the body of a
 * request. No row does I/O.
 */

#include "interval/series.h"
#include "util/buffer.h"

typedef struct EngineInput {
    const Interval *interval;
    const SeriesList *series;
    double weight;    /* each sample stands for so many; 1 unless only a share is sent */
    size_t first;     /* the first series of this request */
    size_t max_bytes; /* of the body; a single series may be larger */
} EngineInput;

typedef struct Engine {
    const char *name; /* "pyroscope": Type= of a destination */
    const char *path; /* appended to the URL unless that has one; NULL: not by HTTP */
    const char *content_type;
    const char *tenant_header; /* NULL: it has no tenants */
    uint64_t max_age_ns;       /* the engine refuses what is older; 0: it takes all */
    size_t max_bytes;          /* of a request before compression; 0: no limit */
    uint32_t max_stacks;       /* distinct stacks of a series; 0: no limit */
    /* Appends the body of one request, with series from input->first up to *ret_next. */
    int (*encode)(const EngineInput *input, Buffer *body, size_t *ret_next);
} Engine;

/* Ends with a row without a name. */
extern const Engine engines[];
const Engine *engine_by_name(const char *name);
