/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Compresses a stream to the gzip format and hands the result to a sink, in pieces. */

#include <stddef.h>

#include "util/macro.h"

enum { GZIP_LEVEL_DEFAULT = 6 };

typedef struct Gzip Gzip;
/* Takes bytes; a negative errno ends the work and is returned. */
typedef int (*GzipSink)(const void *data, size_t size, void *arg);

/* `level`: 1, fast, to 9, small. */
int gzip_new(int level, GzipSink sink, void *arg, Gzip **ret);
Gzip *gzip_free(Gzip *gzip);
DEFINE_CLEANUP(Gzip *, gzip_free);

int gzip_write(Gzip *gzip, const void *data, size_t size);
/* The end of the stream; nothing may be written after it. */
int gzip_finish(Gzip *gzip);
