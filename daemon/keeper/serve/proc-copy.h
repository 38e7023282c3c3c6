/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads what /proc says of a process. */

#include "keeper/request/keeper-request.h"

/* Takes a checked request; see KEEPER_STATS_BYTES for the file. *ret_error: the positive errno of
 * reading the maps, or 0. -ESRCH: the process has ended. */
int proc_copy_read(const KeeperRequest *request, uint32_t *ret_error, int *ret_fd);
