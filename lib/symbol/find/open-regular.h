/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Opens files that somebody else named. */

#include "util/bytes.h"

/* Shows whether a file is still the same, without reading it. */
typedef struct FileIdentity {
    uint64_t device, inode, size, modified_ns;
} FileIdentity;

/* Opens a regular file for reading; nothing else is touched: no device, no FIFO. -EINVAL: it is
 * something else. Symbolic links are followed. */
int open_regular(const char *path, int *ret_fd, FileIdentity *ret);
