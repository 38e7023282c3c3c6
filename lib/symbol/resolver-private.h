/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of this room share: resolver.c names the frames of a profile, loaded-names.c has
 * the tables of the mappings. */

#include "symbol/find/find.h"
#include "symbol/symbol.h"
#include "symbol/table/stored-table.h"
#include "util/hash-index.h"

/* The names of one mapping. */
typedef struct LoadedNames {
    FrameMapping mapping; /* path and dso are copies */
    FrameNaming missing;  /* why an address has no name */
    bool is_done;         /* it was looked for */
    bool has_table;
    StoredTable table;
    FileIdentity file;          /* of the mapped file; all zero: its code was found elsewhere */
    uint64_t used;              /* by which of the namings, last */
    int lines, lines_alternate; /* descriptors of files with the lines of the source; -1: none */
} LoadedNames;

struct SymbolResolver {
    SymbolOptions options;
    FindOptions find;
    LoadedNames *loaded;
    HashIndex by_mapping;
    uint64_t namings; /* of profiles */
    bool is_cache_trimmed;
};

/* The names of a mapping, which are looked for when it is asked for the first time; NULL: no
 * memory. Valid until the next call. */
LoadedNames *loaded_names_get(SymbolResolver *resolver, const FrameMapping *mapping);
/* Programs generate more code all the time: look for its names again when they are needed. */
void loaded_names_forget_generated(SymbolResolver *resolver);
/* See symbol_resolver_limit(). */
void loaded_names_limit(SymbolResolver *resolver, size_t bytes_max, size_t n_max);
void loaded_names_done(SymbolResolver *resolver);
/* Whether there is a symbol at an address as Frame has it, and where it starts in the same terms.
 */
bool loaded_names_find(const LoadedNames *loaded, uint64_t address, NameFound *ret);
/* The address in the terms of the file; false: the file has none for it. */
bool loaded_names_address(const LoadedNames *loaded, uint64_t address, uint64_t *ret);
