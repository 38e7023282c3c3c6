/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* .gnu_debugdata: a compressed ELF file with the symbols that a stripped program lacks. */

#include "reduce/elf-view.h"

enum { DEBUG_DATA_MAX = 64 << 20 }; /* decompressed */

/* Appends the file: 0, -ENODATA if there is none, -EBADMSG, -E2BIG, -ENOMEM, or the error of
 * reading. */
int debug_data_read(const ElfView *view, Buffer *ret);
