/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Gives a finished file to root and its readers, and a folder of the recorder to its readers. */

#include "keeper/rights/keeper-host.h"

/* 0, also for what is sealed already, or a negative errno; -EPERM: it is not the recorder's. */
int sealer_seal(const KeeperHost *host, int fd, bool sensitive);
/* A folder that members of profd-read may enter is for members of profd-admin as well. */
void sealer_admit(const KeeperHost *host, int folder);
