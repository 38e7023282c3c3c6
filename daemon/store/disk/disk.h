/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The main thread never waits for a disk: a disk may take a minute to answer, and the rings
 * overflow sooner. Every function of the store that touches the disk calls disk_touch(), and a
 * thread that must not wait calls disk_forbid().
 */

#include <stdbool.h>

/* Forbids or allows disk access by the calling thread. Returns the previous setting. */
bool disk_forbid(bool forbidden);
/* `what` is about to touch the disk. If that is forbidden, it is a bug: profd logs it once a
 * minute, and builds with -Ddebug-hooks=true abort. */
void disk_touch(const char *what);
