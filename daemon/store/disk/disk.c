/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/disk/disk.h"

#include <stdlib.h>

#include "util/clock.h"
#include "util/log.h"

/*
 * Enforces the rule that the main thread does not wait for a disk, with one flag per thread, which
 * is cheap compared with a system call.
 */

static _Thread_local bool is_forbidden;

bool disk_forbid(bool forbidden) {
    bool before = is_forbidden;

    is_forbidden = forbidden;
    return before;
}

void disk_touch(const char *what) {
    static LogRate rate = {.interval_ns = 60 * NS_PER_SECOND, .burst = 1};

    if (!is_forbidden)
        return;
    log_limited(&rate, LOG_LEVEL_ERROR, 0,
                "The main thread touches the disk (%s), so a slow disk can cost samples; please "
                "report this fault of profd",
                what);
#if PROFD_DEBUG_HOOKS
    abort();
#endif
}
