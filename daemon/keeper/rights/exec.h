/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a child of the keeper does between fork and exec, whatever program it becomes. */

#include "keeper/rights/keeper-host.h"

enum { EXEC_ARGUMENTS_MAX = 64 };

/* The kernel takes it before others when memory runs out: `first` thousandths of the limit before
 * the keeper. While we may still write there. */
void exec_be_killed_first(int first);
/* Only returns when it fails, with errno. fd: the same program, opened while we still could; argv
 * and, where it is not NULL, one more word. */
void exec_program(const char *program, int fd, char *const *argv, char *last);
/* The program that reads ELF files, without any right, with a socket to whoever asks it. */
_Noreturn void exec_elf(const KeeperHost *host, const char *program, int socket);
