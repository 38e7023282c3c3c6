/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/rights/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/macro.h"

/*
 * A list of processes. A child that waits for a file system survives SIGKILL, and so may outlive
 * the keeper: it must hold nothing that others wait for. Rings are not inherited by a fork.
 */

bool helpers_have_room(const Helpers *helpers, KeeperLane lane) {
    size_t n = 0;

    for (size_t i = 0; i < helpers->n; i++)
        n += helpers->list[i].lane == lane;
    return n < HELPERS_MAX;
}

void helpers_add(Helpers *helpers, KeeperLane lane, pid_t pid) {
    assert(helpers->n < ARRAY_SIZE(helpers->list));
    helpers->list[helpers->n].lane = lane;
    helpers->list[helpers->n++].pid = pid;
}

void helpers_ended(Helpers *helpers, pid_t pid, uint64_t cpu_ns) {
    for (size_t i = 0; i < helpers->n; i++)
        if (helpers->list[i].pid == pid) {
            helpers->list[i] = helpers->list[--helpers->n];
            helpers->ended_cpu_ns += cpu_ns;
            return;
        }
}

uint64_t helpers_cpu_ns(const Helpers *helpers) {
    uint64_t sum = helpers->ended_cpu_ns;

    for (size_t i = 0; i < helpers->n; i++) {
        clockid_t clock;

        if (clock_getcpuclockid(helpers->list[i].pid, &clock) == 0)
            sum += clock_ns(clock);
    }
    return sum;
}

void helpers_kill(const Helpers *helpers) {
    for (size_t i = 0; i < helpers->n; i++)
        (void)kill(helpers->list[i].pid, SIGKILL);
}

/* An inherited event would stay open after the keeper has closed it. */
static void helper_close_others(int a, int b) {
    int low = MIN(a, b), high = MAX(a, b);

    if (low > STDERR_FILENO + 1)
        (void)close_range(STDERR_FILENO + 1, (unsigned)low - 1, 0);
    if (high > MAX(low, STDERR_FILENO) + 1)
        (void)close_range((unsigned)MAX(low, STDERR_FILENO) + 1, (unsigned)high - 1, 0);
    (void)close_range((unsigned)high + 1, ~0U, 0);
}

static void helper_silence(void) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (null < 0 || dup2(null, fd) < 0)
            (void)close(fd);
    if (null > STDERR_FILENO)
        (void)close(null);
}

void helper_let_go(int a, int b, bool is_silent) {
    helper_close_others(a, b);
    if (is_silent)
        helper_silence();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}
