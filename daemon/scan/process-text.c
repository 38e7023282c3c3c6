/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/process-text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/log.h"
#include "util/macro.h"

/*
 * Most files of /proc/PID answer at once. The stat file and the maps do not while the kernel has
 * locked the memory or the rights of the process, and a user's FUSE server can make that last for
 * ever. So a helper of the keeper reads these two, and we do not wait long for it. A process that
 * did not answer in time is late, and is not waited for again until its turn has come.
 */

enum { STATUS_SIZE = 16 << 10 }; /* with a thousand groups of the user */

static int process_text_status(int proc, uint32_t pid, char text[STATUS_SIZE]) {
    _cleanup_close_ int fd = -1;
    char path[32];
    ssize_t n;

    snprintf(path, sizeof(path), "%" PRIu32 "/status", pid);
    fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    n = read(fd, text, STATUS_SIZE - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    return 0;
}

int process_inner_pid(int proc, uint32_t pid, uint32_t *ret) {
    char text[STATUS_SIZE];
    int r = process_text_status(proc, pid, text);

    return r < 0 ? r : process_status_inner_pid(text, ret);
}

/* The user who runs a process. The owner of /proc/PID will not do: it is root for a process that
 * made itself not dumpable. */
static int process_text_user(const ProcessTexts *t, uint32_t pid, uid_t *ret) {
    char text[STATUS_SIZE];
    int r = process_text_status(t->proc, pid, text);

    return r < 0 ? r : process_status_user(text, ret);
}

/* How long to wait for a process; 0: it is left for later. */
static unsigned process_text_patience_ms(ProcessTexts *t, uint32_t pid, uint64_t now_ns) {
    uid_t uid;

    if (t->waits_again)
        return LATE_PATIENCE_MS;
    if (late_has(&t->late, pid))
        return 0;
    return t->late.n_users > 0 && process_text_user(t, pid, &uid) == 0
               ? late_patience_ms(&t->late, uid, now_ns)
               : LATE_PATIENCE_MS;
}

static void process_text_note_late(ProcessTexts *t, uint32_t pid, uint64_t since_ns) {
    static LogRate rate = {.interval_ns = 600 * NS_PER_SECOND, .burst = 1};
    uint64_t now_ns = clock_monotonic_ns();
    uid_t uid;

    log_limited(&rate, LOG_LEVEL_NOTICE, 0,
                "The memory of process %" PRIu32 " is locked, perhaps while it waits for a file "
                "system, so its code has no names until it can be read",
                pid);
    if (process_text_user(t, pid, &uid) == 0)
        late_charge(&t->late, uid, now_ns - since_ns, now_ns);
}

static int process_text_parse(int fd, off_t at, ProcessStat *ret) {
    char text[KEEPER_STAT_BYTES];
    ssize_t n = pread(fd, text, sizeof(text), at);

    if (n < 0)
        return -errno;
    return process_stat_parse((Bytes){.data = (uint8_t *)text, .size = strnlen(text, (size_t)n)},
                              ret);
}

/* Where /proc is mounted with hidepid, our own /proc may show processes that the helper cannot see.
 */
static bool process_text_is_hidden(const ProcessTexts *t, uint32_t pid) {
    char name[16];

    snprintf(name, sizeof(name), "%" PRIu32, pid);
    return faccessat(t->proc, name, F_OK, 0) == 0;
}

static int process_text_ask(ProcessTexts *t, uint32_t pid, uint32_t tid, KeeperMaps maps,
                            uint64_t address, ProcessText *ret) {
    _cleanup_close_ int fd = -1;
    ProcessStat after;
    int error, r = keeper_read_process(t->keeper, pid, tid, maps, address, &error, &fd);

    if (r == -ESRCH && process_text_is_hidden(t, pid))
        r = -EACCES;
    if (r == 0)
        r = process_text_parse(fd, 0, &ret->stat);
    if (r == 0)
        r = process_text_parse(fd, KEEPER_STAT_BYTES, &after);
    if (r < 0)
        return r;
    if (ret->stat.start_ticks != after.start_ticks)
        return -EAGAIN;
    ret->maps_error = error;
    ret->fd = maps == KEEPER_MAPS_NONE ? -1 : TAKE_FD(fd);
    return 0;
}

/* `stat` is the process or thread of which the stat file is read; `pid` is late if it is. */
static int process_text_ask_in_time(ProcessTexts *t, uint32_t pid, uint32_t stat, uint32_t tid,
                                    KeeperMaps maps, uint64_t address, ProcessText *ret) {
    uint64_t begin_ns = clock_monotonic_ns();
    unsigned patience_ms = process_text_patience_ms(t, pid, begin_ns);
    int r = -ETIMEDOUT;

    if (patience_ms > 0) {
        keeper_set_patience(t->keeper, patience_ms);
        r = process_text_ask(t, stat, tid, maps, address, ret);
        if (r == -ETIMEDOUT)
            process_text_note_late(t, pid, begin_ns);
    }
    if (r == -ETIMEDOUT)
        late_add(&t->late, pid);
    return r == -EIO ? -EAGAIN : r;
}

int process_text_read(ProcessTexts *t, uint32_t pid, uint32_t tid, KeeperMaps maps,
                      uint64_t address, ProcessText *ret) {
    return process_text_ask_in_time(t, pid, pid, tid, maps, address, ret);
}

int process_text_stat(ProcessTexts *t, uint32_t pid, uint32_t tid, ProcessStat *ret) {
    ProcessText text;
    int r = process_text_ask_in_time(t, pid, tid, tid, KEEPER_MAPS_NONE, 0, &text);

    if (r == 0)
        *ret = text.stat;
    return r;
}
