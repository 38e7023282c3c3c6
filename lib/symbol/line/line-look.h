/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Writes the reply of line_find() to `to`; ends early if the file makes no sense. */
void line_look(int fd, int alternate, int to, const uint64_t *addresses, size_t n);
