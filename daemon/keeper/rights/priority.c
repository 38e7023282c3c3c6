/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/rights/priority.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "util/log.h"

/*
 * Rings fill as fast on a busy host as on an idle one, so the thread that drains them must not
 * queue behind a hundred busy processes. A nice value is enough: profd needs little CPU time, and
 * unlike a real-time priority it cannot starve others. All children of the keeper inherit it, and
 * threads that need it less reduce it (util/thread).
 *
 * A kernel with autogroups weighs sessions of processes against each other and applies nice values
 * only within one, so a keeper that leads its session raises the whole session.
 */

enum { NICE = -15 }; /* the same value as in the unit */

static void priority_raise_autogroup(void) {
    static const char path[] = "/proc/self/autogroup";
    _cleanup_close_ int fd = -1;
    char text[16];

    if (getsid(0) != getpid())
        return;
    fd = open(path, O_WRONLY | O_CLOEXEC);
    snprintf(text, sizeof(text), "%d", NICE);
    if (fd >= 0 && write(fd, text, strlen(text)) < 0)
        log_debug("The kernel does not favour the session of profd, ignoring: %s", strerror(errno));
}

void priority_raise(void) {
    int now;

    errno = 0;
    now = getpriority(PRIO_PROCESS, 0);
    if (errno != 0 || now != 0)
        return;
    if (setpriority(PRIO_PROCESS, 0, NICE) < 0)
        log_debug("Running at the usual priority, samples may be lost when all CPUs are busy: %s",
                  strerror(errno));
    else
        priority_raise_autogroup();
}
