/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Interned strings: one object for each distinct comm, path or dso name. Equal names are equal
 * pointers, and a process needs no copy of a name that its parent had already.
 */

#include "process/hash-table.h"
#include "util/bytes.h"

typedef struct ProcessName ProcessName;

struct ProcessName {
    ProcessName *next; /* in its bucket; first, see hash-table.h */
    uint64_t hash;
    uint32_t refs;
    uint32_t size;
    uint8_t text[]; /* ends with NUL and may contain any other byte */
};

typedef HashTable ProcessNames;

enum { PROCESS_NAME_MAX = 4096 }; /* longer names are cut; same as PATH_MAX */

void names_done(ProcessNames *names, ProcessBudget *budget);
/* Returns a reference to the name of these bytes (up to the first NUL); NULL: no memory. */
ProcessName *names_get(ProcessNames *names, ProcessBudget *budget, Bytes text);
/* Releases a reference; accepts and returns NULL. */
ProcessName *names_put(ProcessNames *names, ProcessBudget *budget, ProcessName *name);

static inline ProcessName *name_ref(ProcessName *name) {
    name->refs++;
    return name;
}

static inline Bytes name_bytes(const ProcessName *name) {
    return (Bytes){.data = name->text, .size = name->size};
}
