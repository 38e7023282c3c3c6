/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A folder that takes profiles or recordings, instead of an engine or a store. */

#include <stddef.h>
#include <stdint.h>

#include "util/bytes.h"

#define FILE_FOLDER_WHOLE SIZE_MAX

typedef struct FileFolderItem {
    const char *name;
    uint64_t since_ns;
    size_t number; /* of several of the same time; FILE_FOLDER_WHOLE: it is the only one */
} FileFolderItem;

typedef struct FileFolderPut {
    const char *folder;                  /* has to exist */
    const char *path;                    /* below it; folders on the way are made */
    int (*fill)(void *userdata, int fd); /* 0 or a negative errno */
    void *userdata;
} FileFolderPut;

/* Makes the file or replaces it. Whoever lists the folder sees only whole files. */
int file_folder_put(const FileFolderPut *put);
/* Removes what was written of a file before a kill. */
void file_folder_forget(const char *folder, const char *path);
/* Makes FOLDER/NAME-YYYYMMDDTHHMMSS[.FRACTION]Z[-NUMBER].pb.gz, in UTC, likewise. */
int file_folder_write(const char *folder, const FileFolderItem *item, Bytes content);
