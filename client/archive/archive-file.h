/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Chooses the files that go into an archive, among those that were sampled. */

#include "archive/tar-writer.h"
#include "client/frame/context.h"
#include "profile/profile.h"

typedef struct ArchiveCount {
    unsigned files;    /* that were packed */
    unsigned missing;  /* sampled, with a build id, and not found */
    unsigned nameless; /* sampled, without a build id */
    bool kernel;       /* the names of the kernel's functions were packed */
    bool has_kernel;   /* it was sampled */
} ArchiveCount;

typedef struct ArchiveOptions {
    const char *const *caches; /* folders laid out as perf's build-id cache */
    size_t n_caches;
    bool reduced; /* what names the code, instead of whole files */
    bool is_of_this_host;
    /* As in SymbolOptions; NULL: nobody is asked. */
    int (*fetch)(const uint8_t *build_id, size_t size, void *arg);
    void (*fetch_maps)(uint32_t pid, void *arg);
    void *arg;
} ArchiveOptions;

/* Writes the files of all mappings that stacks of the profile refer to, each build id once. 0 or a
 * negative errno. */
int archive_write_files(const TarWriter *tar, const ArchiveOptions *options, const Profile *profile,
                        ArchiveCount *ret);
