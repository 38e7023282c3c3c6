/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/find/build-id-folder.h"

#include <stdio.h>

/* The layout is that of gdb's debug files and of perf's cache; ids are written in small letters. */

bool build_id_path(const char *folder, const ElfBuildId *id, const char *suffix,
                   char ret[FIND_PATH_MAX]) {
    char hex[2 * ELF_BUILD_ID_MAX + 1];
    int n;

    if (id->size < 2)
        return false;
    for (size_t i = 0; i < id->size; i++)
        snprintf(hex + 2 * i, 3, "%02x", id->bytes[i]);
    n = snprintf(ret, FIND_PATH_MAX, "%s/.build-id/%.2s/%s%s", folder, hex, hex + 2, suffix);
    return n > 0 && n < FIND_PATH_MAX;
}
