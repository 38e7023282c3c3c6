/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The names that perf prints for mappings, computed from the record alone. */

#include "perfdata/record/record.h"

enum { DSO_NAME_MAX = 4096 };

typedef enum DsoKernelKind {
    DSO_KERNEL,       /* the main mapping of the kernel */
    DSO_MODULE,       /* a module, or anything else with a path or a name in brackets */
    DSO_KERNEL_EXTRA, /* kernel text outside of its main mapping */
} DsoKernelKind;

/* The name of a mapping of a process. The result is in `scratch`, in the record, or constant. */
Bytes dso_user_name(const PdMmap *mmap, bool executable, char scratch[DSO_NAME_MAX]);

DsoKernelKind dso_kernel_kind(Bytes filename);
/* "[ext4]" for /lib/modules/…/ext4.ko.xz; the last part of other paths. */
Bytes dso_module_name(Bytes filename, char scratch[DSO_NAME_MAX]);
/* Whether it is the file of a kernel module; used for BUILD_ID entries in kernel mode. */
bool dso_is_module(Bytes filename);
