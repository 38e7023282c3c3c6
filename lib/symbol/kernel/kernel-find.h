/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the names of the kernel that a recording was made on. */

#include "symbol/find/find.h"

/* Adds the kernel's functions, with addresses counted from _text, since a kernel is moved at each
 * boot: 0, -ENOENT if nobody here has the names of this build id, or -ENOMEM. */
int kernel_find(const FindOptions *options, const ElfBuildId *id, NameBuild *build);
/* Adds the functions of a loaded module, with addresses counted from `start`, where its code began
 * when it was recorded: -ENOENT unless it is loaded there now, in the boot of the recording. `name`
 * is "[NAME]" or the path of its file. */
int kernel_find_module(const FindOptions *options, Bytes name, uint64_t start, NameBuild *build);
