/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the names of a loadable module of the kernel. */

#include "symbol/find/find.h"

/* Adds the functions of a module, with addresses counted from the begin of its code: 0, -ENOENT if
 * nobody here has the names of its build id, or -ENOMEM. The path of the mapping is "[NAME]" or
 * that of its file. */
int kernel_module_find(const FindOptions *options, const FrameMapping *mapping, NameBuild *build);
