/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The tables that all profiles of an OTLP request share. What is asked for gets its number, and is
 * written where it is new. Number 0 of each table is its zero value, as the protocol wants it.
 */

#include "export/export-function.h"
#include "export/export-mapping.h"
#include "profile/text-set.h"
#include "util/buffer.h"

typedef struct OtlpAttribute {
    uint32_t key;   /* a string */
    bool is_text;   /* else a number */
    uint64_t value; /* the number, or that of a string */
} OtlpAttribute;

typedef struct OtlpDictionary {
    const ExportInput *input;
    Buffer tables;    /* fields of the message, without strings */
    TextSet *strings; /* escaped, by number */
    ExportFunctions functions;
    ExportSpan *spans;
    uint32_t *mapping_ids, *location_ids, *function_ids, *stack_ids; /* 0: not written yet */
    uint32_t *name_strings;
    OtlpAttribute *attributes;
    size_t n_attributes;
    HashIndex attribute_index;
    uint32_t n_mappings, n_locations, n_functions, n_stacks, other_stack;
    Buffer text; /* of a string */
    int error;   /* the first failure, negative; sticky */
} OtlpDictionary;

/* The input is borrowed. */
int otlp_dictionary_init(OtlpDictionary *d, const ExportInput *input);
void otlp_dictionary_done(OtlpDictionary *d);

uint32_t otlp_string(OtlpDictionary *d, Bytes text);
/* Of text that is escaped. */
uint32_t otlp_plain_string(OtlpDictionary *d, Bytes text);
uint32_t otlp_text_attribute(OtlpDictionary *d, const char *key, uint32_t string);
uint32_t otlp_number_attribute(OtlpDictionary *d, const char *key, uint64_t value);
/* A node of the profile's stacks. */
uint32_t otlp_stack(OtlpDictionary *d, uint32_t node);
/* The stack that stands for those that were left out. */
uint32_t otlp_other_stack(OtlpDictionary *d);
/* At most so many bytes does the message have. */
size_t otlp_dictionary_size(const OtlpDictionary *d);
/* Appends the content of the message. */
void otlp_dictionary_write(const OtlpDictionary *d, Buffer *out);
