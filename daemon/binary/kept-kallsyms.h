/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The symbols of the running kernel, as /proc/kallsyms has them. */

#include "keeper/request/keeper-client.h"
#include "store/binary/binary-store.h"

/* Keeps those of code by the kernel's build id, unless the same are kept already. Waits for the
 * disk. -EACCES: the kernel hides their addresses; -ENODATA: it has no build id. */
int kept_kallsyms_renew(Keeper *keeper, BinaryStore *store);
/* Notes that what is kept of the running kernel is in use. */
void kept_kallsyms_use(BinaryStore *store);
