/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What `verify` finds, collected, then printed one a line or as JSON. */

#include "util/fields.h"

typedef enum Severity {
    SEVERITY_NOTE,    /* worth knowing */
    SEVERITY_WARNING, /* a part of the truth is missing, as its recorder left it */
    SEVERITY_ERROR,   /* the file contradicts itself or the format */
    N_SEVERITIES,
} Severity;

typedef struct Place {
    bool known;
    uint32_t file; /* as PdRecord.file */
    uint64_t offset;
} Place;

typedef struct Finding {
    Severity severity;
    const char *check; /* constant */
    Place place;       /* the first, where there are several */
    uint64_t n;
    char text[256];
} Finding;

enum { FINDINGS_MAX = 1000 }; /* more are counted, not kept */

typedef struct Findings {
    Finding *items;
    size_t n, allocated;
    uint64_t counts[N_SEVERITIES]; /* of findings */
    bool failed;                   /* memory ran out: the list is not complete */
} Findings;

void findings_done(Findings *findings);
/* `place` NULL: none; n: how many things the finding stands for. */
void findings_add(Findings *findings, Severity severity, const char *check, const Place *place,
                  uint64_t n, const char *format, ...) _printf_(6, 7);

/* Lines of a severity and above, `FILE: offset N: error: …`. */
void findings_print(const Findings *findings, const char *name, Severity least, Buffer *out);
/* As a member `findings` of an open object. */
void findings_describe(const Findings *findings, Fields *fields);
