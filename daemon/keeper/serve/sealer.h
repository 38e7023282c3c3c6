/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Hands a finished file to root and its readers, and makes a folder of the recorder readable for
 * them. */

#include "keeper/rights/keeper-host.h"

/* 0, also if it is sealed already, or a negative errno; -EPERM: it does not belong to the
 * recorder. */
int sealer_seal(const KeeperHost *host, int fd, bool sensitive);
/* Lets members of profd-admin enter a folder that members of profd-read may enter. */
void sealer_admit(const KeeperHost *host, int folder);
