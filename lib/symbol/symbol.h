/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Names of frames: the function, and on request what was inlined and the source line. A file is
 * used only if it is the one that was mapped, by its build id, or without one by device, inode and
 * generation or by not having changed; nothing is named by a path alone.
 */

#include "profile/frame-names.h"
#include "profile/profile.h"

typedef struct SymbolOptions {
    /* Folders laid out as perf's build-id cache, in this order; borrowed. */
    const char *const *caches;
    size_t n_caches;
    const char *table_cache; /* folder for parsed tables by build id; NULL: none */
    bool inlined;            /* inlined functions and source lines too, which takes long */
    bool local_files;        /* look at the files of this host: paths, /usr/lib/debug, kallsyms */
    bool local_processes;    /* the recording is of this host and boot: look at its processes */
    uint64_t written_ns;     /* when the file of the recording was written; 0: not known */
    bool debuginfod;         /* ask the servers of DEBUGINFOD_URLS for what is not here */
    uint64_t debuginfod_ms;  /* how long in all */
    /* Opens the reduced file of a build id from elsewhere, such as a running profd; a descriptor or
     * a negative errno. NULL: there is no such place. */
    int (*fetch)(const uint8_t *build_id, size_t size, void *arg);
    /* Brings the kept maps of the generated code of a process into one of the caches; NULL: nobody
     * has any. */
    void (*fetch_maps)(uint32_t pid, void *arg);
    /* Called now and then while a server is asked; NULL: never. */
    void (*progress)(const char *what, void *arg);
    void *arg;
} SymbolOptions;

typedef struct SymbolResolver SymbolResolver;

int symbol_resolver_new(const SymbolOptions *options, SymbolResolver **ret);
SymbolResolver *symbol_resolver_free(SymbolResolver *resolver);
DEFINE_CLEANUP(SymbolResolver *, symbol_resolver_free);

/* Adds names for the frames of a profile that `names` does not have yet. A frame without a symbol
 * gets a name too, see FrameNaming. Fails only without memory. */
int symbol_name_frames(SymbolResolver *resolver, const Profile *profile, FrameNames *names);

/* Forgets the mappings that were used longest ago, until the tables that are not mapped from a file
 * take no more bytes, and there are no more mappings. A resolver keeps all that it has looked for,
 * so a program that runs for long does this now and then. */
void symbol_resolver_limit(SymbolResolver *resolver, size_t bytes_max, size_t mappings_max);
/* Gives the pages of mapped tables back; they are still in the page cache when they are used. */
void symbol_resolver_rest(SymbolResolver *resolver);

/* Opens the whole file of a mapping, with its code: 0, -ENOENT if it is not here, -ESTALE if the
 * file at its path is another one, or why it cannot be opened. */
int symbol_open_file(SymbolResolver *resolver, const FrameMapping *mapping, int *ret_fd);
