/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What names the code of a sampled file, as the store keeps it: its kind, its name and what is
 * known of it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/bytes.h"

enum {
    BINARY_NAME_MAX = 48,  /* with the NUL */
    BINARY_PATHS_MAX = 4,  /* that are noted of a file */
    BINARY_PATH_MAX = 256, /* with the NUL; a longer one is left out */
    BINARIES_MAX = 16384,
};

typedef enum BinaryKind {
    BINARY_ELF,
    BINARY_VDSO,
    BINARY_KALLSYMS,
    BINARY_MAP,
    BINARY_KINDS, /* the number of kinds */
} BinaryKind;

typedef struct BinaryInfo {
    BinaryKind kind;
    char name[BINARY_NAME_MAX];
    uint32_t owner;
    uint64_t bytes;        /* of the file */
    uint64_t used_real_ns; /* its last use, or nearly so */
    char paths[BINARY_PATHS_MAX][BINARY_PATH_MAX];
    size_t n_paths;
} BinaryInfo;

/* The name of what belongs to a build id: its digits. -EINVAL: it is too short or too long. */
int binary_name_of_id(Bytes build_id, char ret[BINARY_NAME_MAX]);
/* The name of the map of a process: PID-START, with its start in microseconds since the epoch. */
void binary_name_of_map(uint32_t pid, uint64_t start_real_ns, char ret[BINARY_NAME_MAX]);
bool binary_name_is_valid(const char *name);

/* "elf" */
const char *binary_kind_name(BinaryKind kind);
