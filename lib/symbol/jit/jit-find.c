/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/jit/jit-find.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "symbol/find/build-id-folder.h"
#include "symbol/jit/jit-map.h"
#include "symbol/jit/jit-process.h"
#include "util/clock.h"
#include "util/macro.h"

/*
 * A pid is used again, so the names must be those of the process that was sampled: it lives since
 * before the last sample, or profd kept them with the start of the process, or the file that a
 * process left behind was written while it was sampled.
 */

static const uint64_t slack_ns = NS_PER_SECOND;

/* Whether something that was so at this time of the wall clock was so before the last sample. */
static bool jit_find_is_before(const FindOptions *options, uint64_t wall_ns) {
    return wall_ns <= options->ended_ns + slack_ns;
}

static bool jit_find_started_before(const FindOptions *options, const JitProcess *process) {
    return jit_find_is_before(options, clock_booted_ns() + process->start_ns);
}

static int jit_find_read(int fd, Buffer *lines) {
    _cleanup_(buffer_done) Buffer more = {};
    int r = jit_map_read_lines(fd, &more);

    if (r == 0)
        buffer_append(lines, more.data, more.size);
    return r == 0 ? buffer_error(lines) : r;
}

/* -ESRCH: the process does not live any more. */
static int jit_find_living(const FindOptions *options, uint32_t pid, JitLines *ret) {
    JitProcess process;
    int fds[2] = {-1, -1}, r = jit_process_open(options->root, pid, &process);
    bool is_it, any = false;

    if (r < 0)
        return -ESRCH;
    is_it = jit_find_started_before(options, &process);
    if (is_it) {
        fds[0] = jit_process_open_map(&process);
        fds[1] = jit_process_open_dump(&process);
    }
    ret->start_ns = clock_booted_ns() + process.start_ns;
    jit_process_done(&process);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        if (fds[i] < 0)
            continue;
        if (r != -ENOMEM)
            r = jit_find_read(fds[i], &ret->lines);
        any = any || r == 0;
        closep(&fds[i]);
    }
    if (r == -ENOMEM)
        return r;
    return any ? 0 : is_it ? -ENOENT : -ESRCH;
}

/* The start in "PID-START.map", in nanoseconds. */
static bool jit_find_parse_name(const char *name, uint32_t pid, uint64_t *ret_ns) {
    uint64_t start_us;
    uint32_t its_pid;
    int end = 0;

    if (sscanf(name, "%" SCNu32 "-%" SCNu64 ".map%n", &its_pid, &start_us, &end) != 2 || end == 0 ||
        name[end] != '\0' || its_pid != pid || start_us > UINT64_MAX / NS_PER_US)
        return false;
    *ret_ns = start_us * NS_PER_US;
    return true;
}

/* Clocks were set between two readings. */
static bool jit_find_is_same_start(uint64_t a_ns, uint64_t b_ns) {
    return MAX(a_ns, b_ns) - MIN(a_ns, b_ns) < slack_ns;
}

/* The kept map of the last process of this pid that began before the last sample. If it began after
 * the first one, its pid may have been that of another one before, and nobody knows whose code was
 * sampled. If the process lives (living_ns is its start), only its own counts. */
static int jit_find_kept(const FindOptions *options, const char *folder, uint32_t pid,
                         uint64_t living_ns, JitLines *ret) {
    char path[FIND_PATH_MAX], best[256] = "";
    _cleanup_closedir_ DIR *maps = NULL;
    uint64_t start_ns, best_ns = 0;
    unsigned n = 0;
    FileIdentity identity;
    int fd, r;

    if (snprintf(path, sizeof(path), "%s/maps", folder) >= (int)sizeof(path))
        return -ENOENT;
    maps = opendir(path);
    for (struct dirent *e; maps && (e = readdir(maps));) {
        if (!jit_find_parse_name(e->d_name, pid, &start_ns) ||
            !jit_find_is_before(options, start_ns) ||
            (living_ns > 0 && !jit_find_is_same_start(start_ns, living_ns)))
            continue;
        n++;
        if (start_ns >= best_ns) {
            best_ns = start_ns;
            snprintf(best, sizeof(best), "%s", e->d_name);
        }
    }
    if (n == 0 || (n > 1 && best_ns > options->began_ns) ||
        snprintf(path, sizeof(path), "%s/maps/%s", folder, best) >= (int)sizeof(path) ||
        open_regular(path, &fd, &identity) < 0)
        return -ENOENT;
    ret->start_ns = best_ns;
    r = jit_find_read(fd, &ret->lines);
    closep(&fd);
    return r == 0 || r == -ENOMEM ? r : -ENOENT;
}

/* A process that has ended left its map in /tmp. Anybody could put one there, so it must be ours or
 * root's, and it must have been written during the recording. Its process ran when that began. */
static int jit_find_left(const FindOptions *options, uint32_t pid, JitLines *ret) {
    char path[FIND_PATH_MAX];
    FileIdentity identity;
    struct stat st, link;
    int fd, r;

    if (snprintf(path, sizeof(path), "%s/tmp/perf-%" PRIu32 ".map", options->root, pid) >=
            (int)sizeof(path) ||
        open_regular(path, &fd, &identity) < 0)
        return -ENOENT;
    if (fstat(fd, &st) < 0 || lstat(path, &link) < 0 || !S_ISREG(link.st_mode) ||
        (st.st_uid != geteuid() && st.st_uid != 0) || st.st_nlink != 1 ||
        identity.modified_ns + slack_ns < options->began_ns ||
        !jit_find_is_before(options, identity.modified_ns))
        r = -ENOENT;
    else
        r = jit_find_read(fd, &ret->lines);
    ret->start_ns = options->began_ns;
    closep(&fd);
    return r == 0 || r == -ENOMEM ? r : -ENOENT;
}

int jit_find_lines(const FindOptions *options, uint32_t pid, JitLines *ret) {
    int r = -ENOENT, kept = -ENOENT;
    uint64_t living_ns;

    if (options->local_processes && pid > 0)
        r = jit_find_living(options, pid, ret);
    if (r != -ENOENT && r != -ESRCH)
        return r;
    /* -ENOENT: it lived before the last sample and lives, but has no map that can be read. */
    living_ns = options->local_processes && pid > 0 && r == -ENOENT ? ret->start_ns : 0;
    if (options->fetch_maps)
        options->fetch_maps(pid, options->fetch_arg);
    for (size_t i = 0; kept == -ENOENT && i < options->n_caches; i++)
        kept = jit_find_kept(options, options->caches[i], pid, living_ns, ret);
    return kept == -ENOENT && r == -ESRCH ? jit_find_left(options, pid, ret) : kept;
}

int jit_find(const FindOptions *options, uint32_t pid, NameBuild *build) {
    _cleanup_(jit_lines_done) JitLines found = {};
    int r = jit_find_lines(options, pid, &found);

    return r < 0 ? r : jit_map_add(buffer_bytes(&found.lines), build);
}

void jit_lines_done(JitLines *lines) {
    buffer_done(&lines->lines);
}
