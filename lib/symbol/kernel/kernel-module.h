/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the names of a loadable module of the kernel, or the file that has them. */

#include "symbol/find/find.h"

/* Adds the functions of a module, with addresses counted from the begin of its code: 0, -ENOENT if
 * nobody here has the names of its build id, or -ENOMEM. The path of the mapping is "[NAME]" or
 * that of its file. */
int kernel_module_find(const FindOptions *options, const FrameMapping *mapping, NameBuild *build);

typedef struct ModuleFile {
    ElfFile *elf;
    Buffer unpacked; /* what `elf` is of, if the file is compressed */
} ModuleFile;

/* Opens the file that names a module, also if the module is loaded: 0, -ENOENT or -ENOMEM. */
int kernel_module_open(const FindOptions *options, const FrameMapping *mapping, ModuleFile *ret);
void module_file_done(ModuleFile *file);
