/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The separate debug file that a stripped program names in .gnu_debuglink. */

#include "symbol/find/build-id-folder.h"
#include "symbol/find/open-regular.h"

/* Looks beside the program at `path`, in .debug there, and below root/usr/lib/debug. A file counts
 * that has the build id of the program, or without build ids the checksum. 1: found; 0: there is
 * none; -ENOMEM. */
int debug_link_find(const char *root, const char *path, const ElfFile *program, ElfFile **ret,
                    FileIdentity *ret_identity);
/* Opens the file with which dwz made a debug file share information, below root/usr/lib/debug: a
 * descriptor, or -ENOENT. */
int debug_link_open_alternate(const char *root, const ElfFile *file);
