/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Bytes in a memfd that nobody can change any more. */

#include "util/bytes.h"

/* With the seals of elf-request.h. */
int sealed_file_new(Bytes bytes, int *ret_fd);
