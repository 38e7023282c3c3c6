/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "keeper/rights/keeper-host.h"

/* Prepares a folder that the recorder may write to, and the session folders in it; `mode` if it is
 * created. A folder with other content, like /tmp, keeps its owner. */
int folder_prepare(const KeeperHost *host, const char *path, mode_t mode);
