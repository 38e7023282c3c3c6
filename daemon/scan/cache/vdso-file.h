/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>

#include "scan/cache/mapped-image.h"

/* The mapping is the vdso of a 64-bit process, which is the same code in all of them. */
bool vdso_is_mapped(const MappedImage *image);
/* Our own, as a file that can be read. -ENODATA: there is none. */
int vdso_open(int *ret_fd);
