/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Bytes in a sealed memfd, which nobody can change. */

#include "util/bytes.h"

/* Sets ELF_SEALS of elf-request.h. */
int sealed_file_new(Bytes bytes, int *ret_fd);
/* Whether a descriptor that somebody else sent is of plain memory of this size that can neither
 * change nor shrink. */
bool sealed_file_stays(int fd, uint64_t size);
