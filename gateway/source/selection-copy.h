/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A selection that owns its lists, for a thread that works while the original may go. */

#include "process/selection.h"

/* NULL selects all: *ret is then empty. -ENOMEM: *ret is unchanged. */
int selection_copy(const Selection *from, Selection *ret);
void selection_copy_done(Selection *copy);
