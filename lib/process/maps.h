/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * An address space: mappings in order of their addresses, none over another. A forked process
 * shares its parent's until one of the two changes, and then shares all but what changed.
 */

#include "process/image.h"

typedef struct ProcessMapping {
    uint64_t start, end; /* end is outside */
    uint64_t pgoff;
    ProcessImage *image;
} ProcessMapping;

typedef struct ProcessMaps ProcessMaps;

/* Where a record maps, without the image; false where it maps nothing. A length that would go round
 * ends at the top. */
static inline bool mapping_range(const PdMmap *mmap, ProcessMapping *ret) {
    if (mmap->length == 0)
        return false;
    ret->start = mmap->start;
    ret->pgoff = mmap->pgoff;
    if (__builtin_add_overflow(mmap->start, mmap->length, &ret->end))
        ret->end = UINT64_MAX;
    return ret->start < ret->end;
}

enum { PROCESS_MAPS_MAX = 65536 }; /* of one process; the kernel's default is 65,530 */

ProcessMaps *maps_new(ProcessStrings *s);
ProcessMaps *maps_ref(ProcessMaps *maps);
/* Gives back a reference; accepts and returns NULL. */
ProcessMaps *maps_put(ProcessStrings *s, ProcessMaps *maps);

/*
 * Puts a mapping where others may be: what it covers of them is gone, as after mmap(2). Takes over
 * the mapping's reference to its image, always. *maps is replaced by a copy where it is shared.
 * -ENOMEM or -E2BIG: the mapping was dropped; what it would have covered is unmapped as far as
 * memory allowed.
 */
int maps_insert(ProcessStrings *s, ProcessMaps **maps, const ProcessMapping *mapping);
/* Unmaps a range. */
int maps_remove(ProcessStrings *s, ProcessMaps **maps, uint64_t start, uint64_t end);
/* NULL when nothing is mapped there. Valid until the maps change. */
const ProcessMapping *maps_find(const ProcessMaps *maps, uint64_t address);
size_t maps_count(const ProcessMaps *maps);
/* The mappings in turn, *at being 0 at first; NULL after the last. */
const ProcessMapping *maps_next(const ProcessMaps *maps, size_t *at);
