/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * An address space: mappings sorted by address, without overlaps. A forked process shares its
 * parent's maps until one of the two changes, and afterwards shares all blocks that did not change.
 */

#include "process/image.h"

typedef struct ProcessMapping {
    uint64_t start, end; /* end is exclusive */
    uint64_t pgoff;
    ProcessImage *image;
} ProcessMapping;

typedef struct ProcessMaps ProcessMaps;

/* The address range of a record; false if it is empty. A range that would wrap around ends at the
 * highest address. */
static inline bool mapping_range(const PdMmap *mmap, ProcessMapping *ret) {
    if (mmap->length == 0)
        return false;
    ret->start = mmap->start;
    ret->pgoff = mmap->pgoff;
    if (__builtin_add_overflow(mmap->start, mmap->length, &ret->end))
        ret->end = UINT64_MAX;
    return ret->start < ret->end;
}

enum { PROCESS_MAPS_MAX = 65536 }; /* per process; the kernel's default is 65,530 */

ProcessMaps *maps_new(ProcessStrings *s);
ProcessMaps *maps_ref(ProcessMaps *maps);
/* Releases a reference; accepts and returns NULL. */
ProcessMaps *maps_put(ProcessStrings *s, ProcessMaps *maps);

/*
 * Inserts a mapping and removes what it overlaps, like mmap(2). Always takes over the mapping's
 * reference to its image. *maps is replaced by a copy if it is shared. -ENOMEM or -E2BIG: the
 * mapping was dropped; what it overlaps is unmapped as far as memory allowed.
 */
int maps_insert(ProcessStrings *s, ProcessMaps **maps, const ProcessMapping *mapping);
/* Unmaps an address range. */
int maps_remove(ProcessStrings *s, ProcessMaps **maps, uint64_t start, uint64_t end);
/* NULL: nothing is mapped there. Valid until the maps change. */
const ProcessMapping *maps_find(const ProcessMaps *maps, uint64_t address);
/* A number that no other content ever has: it changes with the mappings, and a forked process
 * shares its parent's as long as it shares the mappings. Never 0. */
uint64_t maps_version(const ProcessMaps *maps);
size_t maps_count(const ProcessMaps *maps);
/* Iterates over the mappings; *at is 0 at first; NULL after the last one. */
const ProcessMapping *maps_next(const ProcessMaps *maps, size_t *at);
