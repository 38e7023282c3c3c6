/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The loop of profd-elf. */

/* Answers one request after the other until the other side is gone: 0, or a negative errno. */
int elf_serve(int socket);
/* System calls that it does not need fail from now on; nothing can be opened any more. */
int elf_sandbox(void);
