/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/jit/jit-process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "util/clock.h"
#include "util/macro.h"

/*
 * Paths are looked up in the root folder of the process, which may be that of a container, and
 * never leave it. The process chooses what lies there, so links are refused: with them it could
 * have a file of somebody else read.
 */

enum { TEXT_MAX = 4096, MAPS_LINES_MAX = 1 << 17 };

static ssize_t jit_process_read(int proc, const char *name, char text[TEXT_MAX]) {
    _cleanup_close_ int fd = openat(proc, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, TEXT_MAX - 1) : -1;

    if (n < 0)
        return -ENOENT;
    text[n] = '\0';
    return n;
}

/* Field 22 of stat, in ticks; the name in front of it may hold anything. */
static int jit_process_start(int proc, uint64_t *ret_ns) {
    char text[TEXT_MAX], *p;
    uint64_t ticks;

    if (jit_process_read(proc, "stat", text) < 0)
        return -ENOENT;
    p = strrchr(text, ')');
    for (unsigned i = 2; p && i < 22; i++)
        p = strchr(p + 1, ' ');
    if (!p || sscanf(p, " %" SCNu64, &ticks) != 1)
        return -ENOENT;
    *ret_ns = ticks * (NS_PER_SECOND / (uint64_t)sysconf(_SC_CLK_TCK));
    return 0;
}

/* The last number of the line NSpid is that of the innermost namespace. */
static uint32_t jit_process_inner_pid(int proc, uint32_t pid) {
    char text[TEXT_MAX], *line, *number;

    if (jit_process_read(proc, "status", text) < 0)
        return pid;
    line = strstr(text, "\nNSpid:");
    if (!line)
        return pid;
    line++;
    line[strcspn(line, "\n")] = '\0';
    number = strrchr(line, '\t');
    return number ? (uint32_t)strtoul(number + 1, NULL, 10) : pid;
}

int jit_process_open(const char *root, uint32_t pid, JitProcess *ret) {
    JitProcess process = {.inner_pid = pid};
    char path[TEXT_MAX];
    struct stat st;

    if (snprintf(path, sizeof(path), "%s/proc/%" PRIu32, root, pid) >= (int)sizeof(path))
        return -ENOENT;
    process.proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (process.proc < 0)
        return -ENOENT;
    if (fstat(process.proc, &st) < 0 || jit_process_start(process.proc, &process.start_ns) < 0) {
        jit_process_done(&process);
        return -ENOENT;
    }
    process.uid = st.st_uid;
    process.inner_pid = jit_process_inner_pid(process.proc, pid);
    *ret = process;
    return 0;
}

void jit_process_done(JitProcess *process) {
    closep(&process->proc);
}

/* The path is absolute in the root of the process. */
static int jit_process_open_at(const JitProcess *process, const char *path, struct stat *ret) {
    _cleanup_close_ int root = openat(process->proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS};
    _cleanup_close_ int place = -1, fd = -1;

    if (root < 0)
        return -errno;
    how.flags = O_PATH | O_CLOEXEC;
    place = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
    if (place < 0 || fstat(place, ret) < 0)
        return -errno;
    if (!S_ISREG(ret->st_mode) || ret->st_nlink != 1 || ret->st_uid != process->uid)
        return -EPERM;
    how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
    if (fd < 0 || fstat(fd, ret) < 0)
        return -errno;
    if (!S_ISREG(ret->st_mode) || ret->st_nlink != 1 || ret->st_uid != process->uid)
        return -EPERM;
    return TAKE_FD(fd);
}

int jit_process_open_map(const JitProcess *process) {
    char path[64];
    struct stat st;
    int fd;

    snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", process->inner_pid);
    fd = jit_process_open_at(process, path, &st);
    /* An earlier process of this pid left it. */
    if (fd >= 0 && !clock_is_since_start((uint64_t)st.st_mtim.tv_sec * NS_PER_SECOND +
                                             (uint64_t)st.st_mtim.tv_nsec,
                                         process->start_ns)) {
        closep(&fd);
        return -ESTALE;
    }
    return fd;
}

/* The path of a line of maps if that is a jitdump, and its identity. */
static char *jit_process_dump_path(char *line, unsigned *major_ret, unsigned *minor_ret,
                                   uint64_t *ret_inode) {
    int at = 0;
    char *name, *path;

    if (sscanf(line, "%*x-%*x %*s %*x %x:%x %" SCNu64 " %n", major_ret, minor_ret, ret_inode, &at) <
            3 ||
        at == 0)
        return NULL;
    path = line + at;
    path[strcspn(path, "\n")] = '\0';
    name = strrchr(path, '/');
    return name && strncmp(name, "/jit-", 5) == 0 && strlen(name) > strlen("/jit-.dump") &&
                   strcmp(name + strlen(name) - 5, ".dump") == 0
               ? path
               : NULL;
}

int jit_process_open_dump(const JitProcess *process) {
    int fd = openat(process->proc, "maps", O_RDONLY | O_CLOEXEC), found = -ENOENT;
    FILE *maps = fd >= 0 ? fdopen(fd, "r") : NULL;
    char line[TEXT_MAX];

    if (!maps) {
        closep(&fd);
        return -ENOENT;
    }
    for (unsigned i = 0; found < 0 && i < MAPS_LINES_MAX && fgets(line, sizeof(line), maps); i++) {
        unsigned its_major = 0, its_minor = 0;
        uint64_t inode = 0;
        char *path = jit_process_dump_path(line, &its_major, &its_minor, &inode);
        struct stat st;

        if (!path)
            continue;
        found = jit_process_open_at(process, path, &st);
        if (found >= 0 && (st.st_ino != inode || major(st.st_dev) != its_major ||
                           minor(st.st_dev) != its_minor)) {
            closep(&found);
            found = -ESTALE;
        }
    }
    (void)fclose(maps);
    return found;
}
