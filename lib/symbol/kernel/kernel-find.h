/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the names of the kernel that a recording was made on. */

#include "symbol/find/find.h"

/* Adds the kernel's functions, with addresses counted from the symbol `reference`, since a kernel
 * is moved at each boot: 0, -ENOENT if nobody here has the names of this build id, or -ENOMEM. */
int kernel_find(const FindOptions *options, const ElfBuildId *id, const char *reference,
                NameBuild *build);

/* The build id in a file of notes, as the kernel has them below /sys; size 0: it has none. */
ElfBuildId kernel_find_note(const char *path);
bool kernel_find_same_id(const ElfBuildId *a, const ElfBuildId *b);
