/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Interned strings: one object for each distinct comm, path or dso name, so that equal names are
 * equal pointers and a process costs no copy of what its parent was called already.
 */

#include "process/budget.h"
#include "util/bytes.h"

typedef struct ProcessName ProcessName;

struct ProcessName {
    ProcessName *next; /* in its bucket */
    uint64_t hash;
    uint32_t refs;
    uint32_t size;
    uint8_t text[]; /* ended by NUL, and may hold any other byte */
};

typedef struct ProcessNames {
    ProcessName **buckets;
    size_t n_buckets, n;
    uint64_t seed;
} ProcessNames;

enum { PROCESS_NAME_MAX = 4096 }; /* a longer one is cut; as PATH_MAX */

void names_done(ProcessNames *names, ProcessBudget *budget);
/* A reference to the name of these bytes (up to the first NUL), or NULL for want of memory. */
ProcessName *names_get(ProcessNames *names, ProcessBudget *budget, Bytes text);
/* Gives back a reference; accepts and returns NULL. */
ProcessName *names_put(ProcessNames *names, ProcessBudget *budget, ProcessName *name);

static inline ProcessName *name_ref(ProcessName *name) {
    name->refs++;
    return name;
}

static inline Bytes name_bytes(const ProcessName *name) {
    return (Bytes){.data = name->text, .size = name->size};
}
