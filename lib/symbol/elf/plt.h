/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The stubs through which a file calls functions of others: "malloc@plt". */

#include "reduce/elf-view.h"
#include "symbol/table/name-build.h"

/* Adds them: 0, -ENOMEM, or the error of reading. A file whose stubs are not understood has none.
 */
int plt_names_add(const ElfView *view, NameBuild *build);
