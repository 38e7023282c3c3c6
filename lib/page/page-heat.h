/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which stacks were seen in which span of time, in little space. */

#include "page/page-tree.h"
#include "page/page-writer.h"

/* Writes "heat":{…}, for the profile that was added to the tree last; its key is PROFILE_TIME. */
int page_heat_write(PageWriter *w, const PageInput *input, const PageTree *tree);
