/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The modules of the kernel: their addresses and files. */

#include "elf/note.h"

enum {
    MODULES_MAX = 16384,
    MODULE_NAME_MAX = 63,
};

typedef struct Module {
    uint64_t start, length;
    char name[MODULE_NAME_MAX + 1];
    char *path; /* NULL: not found below /lib/modules */
    BuildId build_id;
} Module;

typedef struct Modules {
    Module *items; /* sorted by address, without overlaps */
    size_t n;
} Modules;

/* Fills zeroed Modules from /proc/modules; after an error the part before it is valid. */
int modules_read(int fd, Modules *ret);
/* Finds their paths and build ids, in /lib/modules and /sys below the root. */
int modules_identify(const char *root, Modules *modules);
void modules_done(Modules *modules);

/* The build id among the notes in a file of sysfs. */
int sysfs_build_id(const char *path, BuildId *ret);
