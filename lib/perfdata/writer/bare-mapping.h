/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Files that a recording maps without a build id. A mapping may be written without one first, and
 * again with one when it is known; then its file is not without one any more. Memory is bounded:
 * what finds no room counts as a file without a build id.
 */

#include "util/bytes.h"
#include "util/macro.h"

typedef struct BareMappings BareMappings;

int bare_mappings_new(BareMappings **ret);
BareMappings *bare_mappings_free(BareMappings *bare);
DEFINE_CLEANUP(BareMappings *, bare_mappings_free);

/* A mapping of `file` without a build id; -ENOMEM. */
int bare_mappings_add(BareMappings *bare, uint32_t pid, uint64_t start, Bytes file);
/* The same mapping came with a build id. */
void bare_mappings_identify(BareMappings *bare, uint32_t pid, uint64_t start, Bytes file);
/* The number of files that have a mapping without a build id. */
size_t bare_mappings_files(const BareMappings *bare);
