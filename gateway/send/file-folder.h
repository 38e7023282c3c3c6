/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A folder that takes profiles, instead of an engine. */

#include <stddef.h>
#include <stdint.h>

#include "util/bytes.h"

#define FILE_FOLDER_WHOLE SIZE_MAX

typedef struct FileFolderItem {
    const char *name;
    uint64_t since_ns;
    size_t number; /* of several of the same time; FILE_FOLDER_WHOLE: it is the only one */
} FileFolderItem;

/* Makes FOLDER/NAME-YYYYMMDDTHHMMSS[.FRACTION]Z[-NUMBER].pb.gz, in UTC, or replaces it. Whoever
 * lists the folder sees only whole files. */
int file_folder_write(const char *folder, const FileFolderItem *item, Bytes content);
