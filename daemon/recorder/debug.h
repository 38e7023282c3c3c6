/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Faults that a test brings about, in builds with -Ddebug-hooks=true alone. */

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* No sweep comes to an end while the file is there that PROFD_DEBUG_HANG names. */
static inline bool debug_sweep_hangs(void) {
#if PROFD_DEBUG_HOOKS
    const char *path = getenv("PROFD_DEBUG_HANG");

    return path && access(path, F_OK) == 0;
#else
    return false;
#endif
}
