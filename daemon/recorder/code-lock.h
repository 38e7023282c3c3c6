/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Keeps the code of this process in memory. A host that lacks memory takes the pages of programs
 * first, and the disk that would give them back may not answer for seconds: then the recorder would
 * stand still while its rings overflow, just when the recording is wanted.
 */

#include <stdint.h>

/* Locks what is only read of the program and its libraries, each page when it is first used.
 * Returns 0, or the first error; what could be locked stays locked. */
int code_lock(uint64_t *ret_bytes);
