/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Keeps a tree small: what is rare becomes one box "[other]" of its caller. */

#include "page/page-tree.h"

/* Keeps about the `nodes_max` nodes that have most samples; before page_tree_sort(). */
int page_tree_fold(PageTree *tree, uint32_t nodes_max);
