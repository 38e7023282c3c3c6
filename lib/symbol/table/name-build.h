/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes the image of a table of names from symbols in any order. */

#include "symbol/table/name-entry.h"
#include "symbol/table/name-table.h"
#include "util/buffer.h"

enum {
    NAME_BUILD_SYMBOLS_MAX = 8 << 20,
    NAME_BUILD_STRINGS_MAX = 512 << 20,
    NAME_BUILD_SEGMENTS_MAX = 64,
};

/* Which symbol names an address that several hold. */
typedef enum NameOrder {
    NAME_BY_START, /* the one that begins last, and of one start the one that perf takes */
    NAME_BY_TIME,  /* the one that was added last: code was overwritten */
} NameOrder;

typedef struct NameSymbol {
    uint64_t address, size; /* size 0: up to the next symbol, but with NAME_BY_TIME: nothing */
    NameBinding binding;
    Bytes name;
} NameSymbol;

typedef struct NameBuild {
    NameOrder order;
    NameEntry *entries;
    size_t n;
    Buffer strings;
    NameSegment segments[NAME_BUILD_SEGMENTS_MAX];
    size_t n_segments;
} NameBuild;

void name_build_init(NameBuild *build, NameOrder order);
void name_build_done(NameBuild *build);
/* Forgets everything that was added. */
void name_build_clear(NameBuild *build);
/* Copies the name; a symbol without one counts as none. 0, -ENOMEM, or -E2BIG. */
int name_build_add(NameBuild *build, const NameSymbol *symbol);
/* A table has at most NAME_BUILD_SEGMENTS_MAX; more are ignored. The first one that has an offset
 * counts. */
void name_build_segment(NameBuild *build, const NameSegment *segment);
/* The address of the first symbol of that name; false: there is none. */
bool name_build_find(const NameBuild *build, const char *name, uint64_t *ret);
/* Counts addresses from `base`, and drops symbols below it. */
void name_build_rebase(NameBuild *build, uint64_t base);
/* Appends the image to the empty buffer; the symbols are then in another order. 0 or -ENOMEM. */
int name_build_image(NameBuild *build, Buffer *ret);
