/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads a stream in the gzip format, with a fixed amount of memory. */

#include <sys/types.h>

#include "util/macro.h"

typedef struct Gunzip Gunzip;
/* Reads bytes: how many, 0 at the end, or a negative errno. */
typedef ssize_t (*GunzipSource)(void *data, size_t size, void *arg);

int gunzip_new(GunzipSource source, void *arg, Gunzip **ret);
Gunzip *gunzip_free(Gunzip *gunzip);
DEFINE_CLEANUP(Gunzip *, gunzip_free);

/* At most `size` bytes: how many, 0 at the end of the stream, -EBADMSG if it is damaged or cut, or
 * the error of the source. */
ssize_t gunzip_read(Gunzip *gunzip, void *data, size_t size);
