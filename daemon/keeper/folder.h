/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "keeper/rights/keeper-host.h"

/* A folder that the recorder may write to, and the folders for sessions in it; `mode` where it is
 * made. One that holds something else, as /tmp does, is left to whom it belongs. */
int folder_prepare(const KeeperHost *host, const char *path, mode_t mode);
