/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The kernel's own code, as the records that perf would write at the start of a recording. */

#include "elf/note.h"
#include "keeper/request/keeper-client.h"
#include "util/buffer.h"

/* The build id of the [vdso] code that the kernel maps into every 64-bit process. */
int kernel_vdso_build_id(BuildId *ret);

typedef struct KernelReader KernelReader;

/* `root` is "" except in tests; both must outlive the reader. */
int kernel_reader_new(const char *root, Keeper *keeper, KernelReader **ret);
KernelReader *kernel_reader_free(KernelReader *reader);
DEFINE_CLEANUP(KernelReader *, kernel_reader_free);

/*
 * Appends the text of the kernel, its modules, and the BPF images that existed at the first call:
 * MMAP2 if the build id is known, else MMAP, and KSYMBOL; no trailer. What cannot be read is left
 * out, and the first such errno is returned; `out` has the rest.
 */
int kernel_reader_read(KernelReader *reader, Buffer *out);
