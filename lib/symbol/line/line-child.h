/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Runs in the child: gives up all rights, writes the reply to `to`, and ends the process. */
_Noreturn void line_child_run(int fd, int alternate, int to, const uint64_t *addresses, size_t n);
