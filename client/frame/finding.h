/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The findings of `verify`: collected, then printed one per line or as JSON. */

#include "util/fields.h"

typedef enum Severity {
    SEVERITY_NOTE,    /* worth knowing */
    SEVERITY_WARNING, /* something is missing that the recorder did not record */
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
    Place place;       /* the first place, if there are several */
    uint64_t n;
    char text[256];
} Finding;

enum { FINDINGS_MAX = 1000 }; /* more are counted but not kept */

typedef struct Findings {
    Finding *items;
    size_t n, allocated;
    uint64_t counts[N_SEVERITIES]; /* of findings */
    bool failed;                   /* memory ran out: the list is incomplete */
} Findings;

void findings_done(Findings *findings);
/* `place` NULL: none; n: how many things the finding represents. */
void findings_add(Findings *findings, Severity severity, const char *check, const Place *place,
                  uint64_t n, const char *format, ...) _printf_(6, 7);

/* Prints findings of a severity and above, `FILE: offset N: error: …`. */
void findings_print(const Findings *findings, const char *name, Severity least, Buffer *out);
/* Adds a member `findings` to an open object. */
void findings_describe(const Findings *findings, Fields *fields);
