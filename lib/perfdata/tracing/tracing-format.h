/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Inside lib/perfdata: one tracepoint of the tracing data, parsed from its `format` text. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/bytes.h"
#include "util/fields.h"

typedef enum TracingKind {
    TRACING_INTEGER,
    TRACING_POINTER,
    TRACING_STRING,
    TRACING_NUMBERS, /* an array of integers */
    TRACING_BYTES,
} TracingKind;

typedef enum TracingPlace {
    TRACING_FIXED,
    TRACING_DATA_LOC, /* the offset has the position: from the start of the raw data */
    TRACING_REL_LOC,  /* the same, from the end of the field */
} TracingPlace;

typedef struct TracingField {
    char *name;
    uint32_t offset, size;
    uint32_t element; /* NUMBERS: bytes of one element */
    TracingKind kind;
    TracingPlace place;
    bool is_signed;
} TracingField;

typedef struct TracingFormat {
    uint64_t id;
    char *name; /* "system:event" */
    TracingField *fields;
    size_t n_fields;
} TracingFormat;

/* -EBADMSG if the text is not a valid format. */
int tracing_format_parse(Bytes system, Bytes text, unsigned long_size, TracingFormat *ret);
void tracing_format_done(TracingFormat *format);
void tracing_format_describe(const TracingFormat *format, Bytes raw, bool swap, Fields *f);
