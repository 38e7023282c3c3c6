/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads what a process maps. */

#include "keeper/request/keeper-request.h"

/* Takes a checked request. The file has the lines that were asked for, perhaps among others, and is
 * to be read from its beginning. -ESRCH: the process has ended. */
int maps_read(const KeeperRequest *request, int *ret_fd);
