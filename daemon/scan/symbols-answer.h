/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What was found that names code, for whoever keeps it. */

#include <sys/types.h>

#include "elf/note.h"
#include "process/process-name.h"
#include "scan/cache/mapped-image.h"

/* Whether the keeper of the symbols has those of a build id already, of a file of that owner. For
 * the reading thread. */
typedef struct SymbolsFilter {
    bool (*has)(void *userdata, const BuildId *build_id, uid_t owner);
    /* Whether what was found waits to be written, so that no more can be taken now. */
    bool (*is_full)(void *userdata);
    void *userdata;
} SymbolsFilter;

typedef struct SymbolsAnswer {
    int result; /* 0, or why there is nothing */
    BuildId build_id;
    uid_t owner; /* of the file */
    bool is_vdso;
    int fd;         /* a sealed memfd with the reduced file; -1 with result 0: it is kept already */
    uint64_t bytes; /* of it */
    char path[PROCESS_NAME_MAX + 1]; /* as the process sees it */
} SymbolsAnswer;

typedef struct CodeMapAnswer {
    int result;
    uint32_t pid;
    uint64_t start_ns; /* when the process began, in CLOCK_BOOTTIME */
    bool has_ended;    /* the process has, so this is the last that its file says */
    int source;        /* the file of the process; stays open, since nobody can open it later */
    bool is_unread;    /* the file has changed, but it could not be read now; later it may be */
    uint64_t size;     /* of that file when it was read, and when it was written then */
    int64_t mtime_ns;
    int fd;         /* a sealed memfd with the names; -1: there are none, or none that are new */
    uint64_t bytes; /* of it */
} CodeMapAnswer;
