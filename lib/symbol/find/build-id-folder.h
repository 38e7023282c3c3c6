/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Folders with a file for each build id: FOLDER/.build-id/xx/REST and something behind it. */

#include "symbol/elf/elf-file.h"

enum { FIND_PATH_MAX = 4096 };

/* false: there is no such path. */
bool build_id_path(const char *folder, const ElfBuildId *id, const char *suffix,
                   char ret[FIND_PATH_MAX]);
