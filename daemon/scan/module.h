/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The modules of the kernel: where they are and which files they came from. */

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
    Module *items; /* in order of address, none over another */
    size_t n;
} Modules;

/* Fills all-zero Modules from /proc/modules; what came before an error stays. */
int modules_read(int fd, Modules *ret);
/* Looks for their paths and build ids, in /lib/modules and /sys below the root. */
int modules_identify(const char *root, Modules *modules);
void modules_done(Modules *modules);

/* The build id among the notes in a file of sysfs. */
int sysfs_build_id(const char *path, BuildId *ret);
