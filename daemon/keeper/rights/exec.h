/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a child of the keeper does between fork and exec, for any program. */

#include "keeper/rights/keeper-host.h"

enum { EXEC_ARGUMENTS_MAX = 64 };

/* Makes the kernel kill this process before others when memory runs out: adds `first` thousandths
 * of the limit to the keeper's score. Call it before the right to do so is dropped. */
void exec_be_killed_first(int first);
/* Returns only on failure, with errno. fd: the same program, opened while that was possible; the
 * arguments are argv and, if it is not NULL, `last`. */
void exec_program(const char *program, int fd, char *const *argv, char *last);
/* Executes the program that reads ELF files, without any rights, with a socket to its caller. */
_Noreturn void exec_elf(const KeeperHost *host, const char *program, int socket);
