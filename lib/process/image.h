/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a mapping maps: a file by its identity (build id, else device, inode and generation), the
 * path by which the process mapped it, and the dso name that perf prints. Processes that map the
 * same thing in the same way share one object.
 */

#include <sys/mman.h>

#include "perfdata/record/record.h"
#include "process/process-name.h"

typedef struct ProcessImage ProcessImage;

typedef unsigned __int128 EmissionSet; /* a bit for each Emission of a History */

struct ProcessImage {
    ProcessImage *next; /* in its bucket; first, see hash-table.h */
    uint64_t hash;
    uint32_t refs;
    uint32_t prot, flags; /* of MMAP2; 0 if the record has none */
    uint32_t major, minor;
    uint64_t inode, generation;
    uint8_t build_id_size; /* 0: none */
    uint8_t build_id[20];
    uint8_t found_id_size; /* looked up later, so it is not part of the identity */
    uint8_t found_id[20];
    uint8_t tries;            /* number of lookups that found nothing */
    bool asked;               /* a lookup or a check is queued or running */
    bool is_running;          /* a lookup or a check is running */
    bool waits;               /* recordings wait for its build id */
    bool is_late;             /* the lookup took too long */
    bool is_due;              /* recordings that owe it write it in this settle */
    bool is_apart;            /* nothing is mapped to it any more, see history-check.c */
    bool counted;             /* counted as unidentified */
    uint64_t hold_ns;         /* the floor stays there while it waits */
    uint64_t version;         /* of the content from which the build id was read; 0: unknown */
    uint64_t sure_ns;         /* what was mapped up to then has the found build id */
    struct ImageCheck *check; /* of what was mapped since; NULL: nothing was */
    ProcessImage *unproven;   /* has the mappings whose check failed */
    uint64_t unproven_ns;     /* the time of the last of these */
    uint64_t kept_ns; /* when a caller last asked for its symbols; history does not use it */
    EmissionSet owed; /* those that wrote it without a build id */
    ProcessImage *next_due;
    bool kernel; /* the kernel itself, not a module or generated code */
    ProcessName *path, *dso;
};

typedef HashTable ProcessImages;

/* The names of the images are references into `names`, so both live together. */
typedef struct ProcessStrings {
    ProcessBudget budget;
    ProcessNames names;
    ProcessImages images;
    uint64_t maps_version; /* the last one that was given away */
} ProcessStrings;

void images_done(ProcessStrings *s);
/* Returns a reference to the image of a mapping whose dso name is `dso`; NULL: no memory. */
ProcessImage *images_get(ProcessStrings *s, const PdMmap *mmap, Bytes dso, bool kernel);
ProcessImage *images_put(ProcessStrings *s, ProcessImage *image);
/* Returns a reference to another image of the same file, without what was found out; NULL: no
 * memory. images_get() returns the image that is not apart. */
ProcessImage *images_split(ProcessStrings *s, ProcessImage *image);
/* The image that maps the same file as `data` as code, in any process; borrowed. NULL: no mapping
 * of the file is executable. */
ProcessImage *images_find_code(const ProcessStrings *s, const ProcessImage *data);

/* Readable and not executable; false if the protection is unknown. */
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
