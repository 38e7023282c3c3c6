/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the files that name the code of a mapping: the mapped file itself, and better ones with the
 * same build id. A file that cannot be shown to be the mapped one is never returned. */

#include "profile/profile.h"
#include "symbol/elf/elf-names.h"
#include "symbol/find/debug-server.h"
#include "symbol/find/open-regular.h"

typedef struct FindOptions {
    const char *root; /* before the paths of this host: "" except in tests */
    const char *const *caches;
    size_t n_caches;
    bool local_files;
    bool wants_lines; /* go on looking for a file with the lines of its source */
    int (*fetch)(const uint8_t *build_id, size_t size, void *arg); /* as in SymbolOptions */
    void (*fetch_maps)(uint32_t pid, void *arg);
    void *fetch_arg;
    DebugServer *server; /* NULL: none is asked */
    /* Wall-clock time of the last sample; a file without a build id that was written later is
     * another one. 0: not known. */
    uint64_t until_ns;
    /* Wall-clock time before the first sample; a file that has not changed since was the same then.
     * 0: not known, or the recording is not of this host and boot. */
    uint64_t unchanged_ns;
    uint64_t written_ns;  /* as in SymbolOptions */
    bool local_processes; /* pids of the recording are those of this host, since its boot */
    /* Wall-clock time of the first and last sample, by estimate if nothing better is known. */
    uint64_t began_ns, ended_ns;
} FindOptions;

typedef struct FoundElf {
    ElfFile *code;    /* the mapped file or a reduced copy, with its segments; NULL: not found */
    ElfFile *symbols; /* the file with the most names, if that is another one */
    bool is_replaced; /* the file at the path is another one */
    bool is_stable;   /* the identities below are known, so the result may be kept */
    FileIdentity code_identity, symbols_identity;
} FoundElf;

/* Sets the times of the samples, and local_processes if the recording is of this host and boot. */
void find_set_times(FindOptions *options, const Profile *profile, bool is_of_this_host);
/* 0, also if nothing was found, or -ENOMEM. */
int find_elf(const FindOptions *options, const FrameMapping *mapping, FoundElf *ret);
void found_elf_done(FoundElf *found);
/* The descriptor of the found file with lines of its source, borrowed; -1: there is none. */
int found_elf_lines(const FoundElf *found);
/* Which file the path of the mapping leads to on this host, whether it is the mapped one or not. */
int find_look(const FindOptions *options, const FrameMapping *mapping, FileIdentity *ret);
/* Only the mapped file itself, with its code: 0, -ENOENT, -ESTALE if the file at the path is
 * another one, or why it cannot be opened. */
int find_mapped(const FindOptions *options, const FrameMapping *mapping, ElfFile **ret,
                FileIdentity *ret_identity);
