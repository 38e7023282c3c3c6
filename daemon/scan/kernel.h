/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The kernel's own code, as the records that perf would write at the head of a recording. */

#include "elf/note.h"
#include "keeper/request/keeper-client.h"
#include "util/buffer.h"

/* The build id of the code that the kernel maps into every 64-bit process as [vdso]. */
int kernel_vdso_build_id(BuildId *ret);

typedef struct KernelReader KernelReader;

/* `root` is "" but in tests; both must outlive the reader. */
int kernel_reader_new(const char *root, Keeper *keeper, KernelReader **ret);
KernelReader *kernel_reader_free(KernelReader *reader);
DEFINE_CLEANUP(KernelReader *, kernel_reader_free);

/*
 * Appends the text of the kernel, its modules and the BPF images that were there when this was
 * called first: MMAP2 with a build id where one is known, else MMAP, and KSYMBOL; no trailer. What
 * cannot be read is left out, and the first such errno returned; `out` holds the rest.
 */
int kernel_reader_read(KernelReader *reader, Buffer *out);
