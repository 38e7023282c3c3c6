/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The main thread waits for no disk: a disk may take a minute to answer, and the rings of the
 * kernel hold samples for less than that. Every function of the store that reaches the disk says so
 * here, and a thread that must not wait says that.
 */

#include <stdbool.h>

/* For the calling thread: from now on it may not touch the disk of the store, or may again. Returns
 * what held before. */
bool disk_forbid(bool forbidden);
/* `what` is about to touch the disk. Where that is forbidden it is an error of ours: the log says
 * so once a minute, and builds with -Ddebug-hooks=true end. */
void disk_touch(const char *what);
