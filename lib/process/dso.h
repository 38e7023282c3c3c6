/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The names under which perf shows what is mapped, worked out from the record alone. */

#include "perfdata/record/record.h"

enum { DSO_NAME_MAX = 4096 };

typedef enum DsoKernelKind {
    DSO_KERNEL,       /* the kernel proper */
    DSO_MODULE,       /* a module, or anything else named by a path or in brackets */
    DSO_KERNEL_EXTRA, /* text of the kernel outside its main mapping */
} DsoKernelKind;

/* Of a process's mapping. The result is in `scratch`, in the record, or constant. */
Bytes dso_user_name(const PdMmap *mmap, bool executable, char scratch[DSO_NAME_MAX]);

DsoKernelKind dso_kernel_kind(Bytes filename);
/* "[ext4]" for /lib/modules/…/ext4.ko.xz; other paths show their last part. */
Bytes dso_module_name(Bytes filename, char scratch[DSO_NAME_MAX]);
/* Whether it is a kernel module's, for what a BUILD_ID entry of the kernel's mode names. */
bool dso_is_module(Bytes filename);
