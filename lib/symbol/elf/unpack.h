/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decompression of ELF files, into memory and up to a limit. */

#include "util/buffer.h"

/* Appends at most about `max` bytes: 0, -EBADMSG, -E2BIG or -ENOMEM. */
int unpack_xz(Bytes packed, size_t max, Buffer *ret);
int unpack_zstd(Bytes packed, size_t max, Buffer *ret);
int unpack_gzip(Bytes packed, size_t max, Buffer *ret);
/* Appends the content of a compressed file, such as a module of the kernel. Returns 1, 0 if the
 * file is not compressed, or a negative errno. The descriptor is borrowed. */
int unpack_file(int fd, Buffer *ret);
