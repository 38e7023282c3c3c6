/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decompression of ELF files, into memory and up to a limit. */

#include "util/buffer.h"

/* Appends at most about `max` bytes: 0, -EBADMSG, -E2BIG or -ENOMEM. */
int unpack_xz(Bytes packed, size_t max, Buffer *ret);
int unpack_zstd(Bytes packed, size_t max, Buffer *ret);
/* What a file has that is compressed, as modules of the kernel are: 1; 0: it is not; or a negative
 * errno. The descriptor is borrowed. */
int unpack_file(int fd, Buffer *ret);
