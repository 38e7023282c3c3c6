/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Faults that tests inject. Compiled in only with -Ddebug-hooks=true. */

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* While the file that PROFD_DEBUG_HANG names exists, no sweep completes. */
static inline bool debug_sweep_hangs(void) {
#if PROFD_DEBUG_HOOKS
    const char *path = getenv("PROFD_DEBUG_HANG");

    return path && access(path, F_OK) == 0;
#else
    return false;
#endif
}
