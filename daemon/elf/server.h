/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The main loop of profd-elf. */

/* Answers requests until the other side is gone: 0, or a negative errno. */
int elf_serve(int socket);
/* From now on system calls that it does not need fail; it can open nothing any more. */
int elf_sandbox(void);
