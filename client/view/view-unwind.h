/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Unwind tables of the files of this host, for recordings with copies of stacks. */

#include "profile/frame.h"
#include "unwind/unwind-table.h"

typedef struct ViewUnwind ViewUnwind;

int view_unwind_new(ViewUnwind **ret);
ViewUnwind *view_unwind_free(ViewUnwind *unwind);
/* For ProfileOptions.unwind_table, with a ViewUnwind as its argument. Each file is read once. */
int view_unwind_table(const FrameMapping *mapping, const UnwindTable **ret, void *arg);
