/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a mapping maps: a file by its identity (build id, else device, inode and generation), the
 * path under which the process saw it, and the dso name that perf prints for it. One object for
 * all processes that map the same thing in the same way.
 */

#include <sys/mman.h>

#include "perfdata/record/record.h"
#include "process/process-name.h"

typedef struct ProcessImage ProcessImage;

struct ProcessImage {
    ProcessImage *next; /* in its bucket */
    uint64_t hash;
    uint32_t refs;
    uint32_t prot, flags; /* of MMAP2; 0 where the record did not say */
    uint32_t major, minor;
    uint64_t inode, generation;
    uint8_t build_id_size; /* 0: none */
    uint8_t build_id[20];
    uint8_t found_id_size; /* looked up later, and so not part of what it is */
    uint8_t found_id[20];
    uint8_t tries; /* to look it up that found nothing */
    bool asked;    /* somebody looks it up */
    bool waits;    /* recordings hold its mappings back until the answer comes */
    bool is_late;  /* the answer did not come in time */
    bool is_due;   /* recordings that owe it write it now */
    bool counted;  /* among those that could not be identified */
    uint64_t owed; /* by which Emissions: what they wrote of it has no build id */
    ProcessImage *next_due;
    bool kernel; /* the kernel proper, neither module nor generated code */
    ProcessName *path, *dso;
};

typedef struct ProcessImages {
    ProcessImage **buckets;
    size_t n_buckets, n;
    uint64_t seed;
} ProcessImages;

/* The table's names hold the images' names, so they go together. */
typedef struct ProcessStrings {
    ProcessBudget budget;
    ProcessNames names;
    ProcessImages images;
} ProcessStrings;

void images_done(ProcessStrings *s);
/* A reference to the image of a mapping that is shown as `dso`, or NULL for want of memory. */
ProcessImage *images_get(ProcessStrings *s, const PdMmap *mmap, Bytes dso, bool kernel);
ProcessImage *images_put(ProcessStrings *s, ProcessImage *image);
/* The image as which the file of a data mapping is executed, in whatever process; borrowed. NULL:
 * nobody maps it so. */
ProcessImage *images_find_code(const ProcessStrings *s, const ProcessImage *data);

/* Read and not executed; not where nobody says. */
static inline bool prot_is_data(uint32_t prot) {
    return (prot & PROT_READ) && !(prot & PROT_EXEC);
}

static inline bool image_is_data(const ProcessImage *image) {
    return prot_is_data(image->prot);
}

static inline ProcessImage *image_ref(ProcessImage *image) {
    image->refs++;
    return image;
}
