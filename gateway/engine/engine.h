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
    size_t max_bytes; /* of the body; 0: no limit. What does not fit by itself is folded */
    /* Incremented by the samples whose stack became "[other]" because of a limit; may be NULL. */
    uint64_t *folded;
} EngineInput;

/* What an engine did not take of a request to which it answers with success. */
typedef struct EngineRejection {
    uint64_t profiles; /* as many as series of the request, or fewer; 0: it took all */
    Bytes message;     /* the reason, or a warning, in the answer; may be empty, any bytes */
} EngineRejection;

typedef struct Engine {
    const char *name; /* "pyroscope": Type= of a destination */
    const char *path; /* appended to the URL unless that has one; NULL: not by HTTP */
    const char *content_type;
    const char *tenant_header; /* NULL: it has no tenants */
    bool is_compressed;        /* the body is: it needs no Content-Encoding */
    uint64_t max_age_ns;       /* the engine refuses what is older; 0: it takes all */
    size_t max_bytes;          /* of a request before compression; 0: no limit */
    uint32_t max_stacks;       /* samples of one profile; 0: no limit */
    /* Writes the body of one request into an empty buffer, with series from input->first up to
     * *ret_next. It stays empty if they have no sample. */
    int (*encode)(const EngineInput *input, Buffer *body, size_t *ret_next);
    /* Reads an answer of success; NULL: it says nothing. */
    EngineRejection (*rejection)(Bytes answer);
} Engine;

/* Ends with a row without a name. */
extern const Engine engines[];
const Engine *engine_by_name(const char *name);

/* The three stacks with known sums that every engine must give back: 50 samples of 10,101,010 ns,
 * 40 in leaf, 8 in rec, 2 in main, recorded in [since, until). */
int engine_golden(uint64_t since_ns, uint64_t until_ns, Interval **ret);
