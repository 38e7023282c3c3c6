/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A keeper in the same process, for tests of code that reads through one: it opens files below a
 * root with the rights of the test, and can be made to refuse.
 */

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf/server.h"
#include "keeper/request/keeper-client.h"
#include "keeper/serve/proc-copy.h"
#include "util/macro.h"

struct Keeper {
    const char *root;
    bool has_no_query;  /* maps are read as on a kernel without PROCMAP_QUERY */
    int refuses;        /* fails for every maps file with this errno */
    int refuses_all;    /* fails for every process with this errno */
    int kallsyms_fails; /* fails with this errno */
    int proc;           /* a /proc that shows all; 0: none */
    int refuses_mapped; /* fails for every mapping with this errno */
    atomic_uint n_opened, n_mapped, n_images, n_elf;
    void (*elf)(int socket); /* NULL: the default */
    pid_t elf_pid;
    bool stopped;
    /* Called before maps are opened, to change the files in between. */
    void (*before_maps)(Keeper *keeper, uint32_t pid);
    void *userdata;
};

static inline int stand_in_open(const char *path, int *ret_fd) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

int keeper_open_file(Keeper *keeper, KeeperFile file, int *ret_fd) {
    char path[PATH_MAX];

    if (file == KEEPER_KALLSYMS && keeper->kallsyms_fails != 0)
        return -keeper->kallsyms_fails;
    if (file == KEEPER_PROC) {
        *ret_fd = keeper->proc > 0 ? dup(keeper->proc) : -1;
        return *ret_fd < 0 ? -EPERM : 0;
    }
    snprintf(path, sizeof(path), "%s/proc/%s", keeper->root,
             file == KEEPER_KALLSYMS ? "kallsyms" : "modules");
    atomic_fetch_add(&keeper->n_opened, 1);
    return stand_in_open(path, ret_fd);
}

static inline int stand_in_copy(int from, int to, size_t max) {
    char data[4096];
    ssize_t n;

    while (max > 0 && (n = read(from, data, MIN(sizeof(data), max))) > 0) {
        if (write(to, data, (size_t)n) != n)
            abort();
        max -= (size_t)n;
    }
    return lseek(to, 0, SEEK_CUR) > 0 ? 0 : -ESRCH;
}

/* A file of a process below the root, or below the /proc that shows all. */
static inline int stand_in_open_of(const Keeper *keeper, uint32_t pid, const char *name, int *ret) {
    char path[PATH_MAX];

    if (keeper->proc > 0)
        snprintf(path, sizeof(path), "/proc/self/fd/%d/%u/%s", keeper->proc, pid, name);
    else
        snprintf(path, sizeof(path), "%s/proc/%u/%s", keeper->root, pid, name);
    return stand_in_open(path, ret);
}

/* As the helper does it, of files that a test has made up. */
static inline int stand_in_read_process(Keeper *keeper, uint32_t pid, uint32_t tid, bool has_maps,
                                        int *ret_maps, int *ret_fd) {
    int to = memfd_create("process", MFD_CLOEXEC), maps = -1;
    _cleanup_close_ int stat = -1, result = to;
    char name[64], byte;
    int r = stand_in_open_of(keeper, pid, "stat", &stat);

    if (r == 0)
        r = stand_in_copy(stat, to, KEEPER_STAT_BYTES);
    if (r < 0)
        return r == -ENOENT ? -ESRCH : r;
    if (has_maps && keeper->before_maps)
        keeper->before_maps(keeper, pid);
    snprintf(name, sizeof(name), "task/%u/maps", tid);
    *ret_maps = -keeper->refuses;
    if (has_maps && keeper->refuses == 0)
        *ret_maps = stand_in_open_of(keeper, pid, name, &maps);
    (void)lseek(to, KEEPER_STATS_BYTES, SEEK_SET);
    if (maps >= 0)
        (void)stand_in_copy(maps, to, SIZE_MAX);
    closep(&maps);
    /* The kernel answers only while that very process exists. */
    if (pread(stat, &byte, 1, 0) != 1)
        return -ESRCH;
    (void)lseek(stat, 0, SEEK_SET);
    (void)lseek(to, KEEPER_STAT_BYTES, SEEK_SET);
    (void)stand_in_copy(stat, to, KEEPER_STAT_BYTES);
    (void)lseek(to, KEEPER_STATS_BYTES, SEEK_SET);
    *ret_fd = TAKE_FD(result);
    return 0;
}

int keeper_read_process(Keeper *keeper, uint32_t pid, uint32_t tid, KeeperMaps maps,
                        uint64_t address, int *ret_maps, int *ret_fd) {
    KeeperRequest request = {.file = maps, .pid = pid, .tid = tid, .start = address};
    uint32_t error;
    int r;

    if (keeper->refuses_all != 0)
        return -keeper->refuses_all;
    if (maps != KEEPER_MAPS_NONE)
        atomic_fetch_add(&keeper->n_opened, 1);
    if (keeper->root[0] != '\0' || keeper->proc > 0 || keeper->has_no_query ||
        keeper->before_maps || keeper->refuses != 0)
        return stand_in_read_process(keeper, pid, tid, maps != KEEPER_MAPS_NONE, ret_maps, ret_fd);
    r = proc_copy_read(&request, &error, ret_fd);
    *ret_maps = -(int)error;
    return r;
}

/* It answers at once. */
void keeper_set_patience(Keeper *keeper _unused_, unsigned ms _unused_) {
}

/* The threads of process 42 are 420 to 426. */
int keeper_read_namespaces(Keeper *keeper, uint32_t pid, KeeperNamespace ret[KEEPER_NAMESPACES]) {
    if (keeper->refuses != 0)
        return -keeper->refuses;
    for (size_t i = 0; i < KEEPER_NAMESPACES; i++)
        ret[i] = (KeeperNamespace){.dev = 4, .inode = pid * 10 + i};
    return 0;
}

/* As the opener tells. */
static inline int stand_in_identify(int r, int fd, KeeperFileId *ret) {
    long version = 0;
    struct stat st;

    if (r < 0 || fstat(fd, &st) < 0)
        return r;
    *ret = (KeeperFileId){.major = major(st.st_dev),
                          .minor = minor(st.st_dev),
                          .inode = st.st_ino,
                          .size = (uint64_t)st.st_size,
                          .mtime_ns = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec,
                          .ctime_ns = st.st_ctim.tv_sec * 1000000000LL + st.st_ctim.tv_nsec};
    ret->has_generation = ioctl(fd, FS_IOC_GETVERSION, &version) == 0;
    ret->generation = (uint32_t)version;
    return 0;
}

int keeper_open_mapped(Keeper *keeper, uint32_t pid, uint64_t start, uint64_t end,
                       KeeperFileId *ret_id, int *ret_fd) {
    char path[PATH_MAX];
    int r;

    if (keeper->refuses_mapped != 0)
        return -keeper->refuses_mapped;

    snprintf(path, sizeof(path), "/proc/%u/map_files/%lx-%lx", pid, (unsigned long)start,
             (unsigned long)end);
    atomic_fetch_add(&keeper->n_mapped, 1);
    r = stand_in_open(path, ret_fd);
    return stand_in_identify(r, *ret_fd, ret_id);
}

int keeper_open_image(Keeper *keeper, uint32_t pid, const char *path, KeeperFileId *ret_id,
                      int *ret_fd) {
    char full[PATH_MAX + 32];
    int r;

    snprintf(full, sizeof(full), "/proc/%u/root%s", pid, path);
    atomic_fetch_add(&keeper->n_images, 1);
    r = stand_in_open(full, ret_fd);
    return stand_in_identify(r, *ret_fd, ret_id);
}

/* The map of a process that shares our namespaces, without the checks of the keeper. */
int keeper_open_code_map(Keeper *keeper _unused_, uint32_t pid, uint32_t inner,
                         uint64_t start _unused_, uint64_t end _unused_, int *ret_fd) {
    char path[64];

    snprintf(path, sizeof(path), "/proc/%u/root/tmp/perf-%u.map", pid, inner);
    return stand_in_open(path, ret_fd);
}

/* Starts a fork that reads like profd-elf; `elf` may replace it. */
int keeper_start_elf(Keeper *keeper, uint32_t *ret_pid, int *ret_fd) {
    int pair[2];
    pid_t pid;

    if (keeper->elf_pid > 0)
        (void)kill(keeper->elf_pid, SIGKILL);
    if (keeper->elf_pid > 0)
        (void)waitpid(keeper->elf_pid, NULL, 0);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0) {
        (void)close(pair[0]);
        if (keeper->elf)
            keeper->elf(pair[1]);
        else
            (void)elf_serve(pair[1]);
        _exit(0);
    }
    (void)close(pair[1]);
    keeper->elf_pid = pid;
    atomic_fetch_add(&keeper->n_elf, 1);
    *ret_pid = (uint32_t)pid;
    *ret_fd = pair[0];
    return 0;
}

int keeper_elf_end(Keeper *keeper, int *ret_status) {
    if (keeper->elf_pid > 0 && waitpid(keeper->elf_pid, ret_status, WNOHANG) == 0)
        return -EINPROGRESS;
    keeper->elf_pid = 0;
    return 0;
}

int keeper_status(Keeper *keeper _unused_, KeeperStatus *ret) {
    *ret = (KeeperStatus){.cpu_ns = 1000};
    return 0;
}

void keeper_stop_waiting(Keeper *keeper) {
    keeper->stopped = true;
}

/* Never readable: the requests of a test are always answered. */
int keeper_stop_fd(const Keeper *keeper _unused_) {
    return -1;
}
