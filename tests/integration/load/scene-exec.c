/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load.h"
#include "storm.h"

/*
 * Scenes that run a copy of this program, under a name that tells which scene it was: by exec, by
 * one exec after another, by vfork, out of a memfd, and copies that are deleted or replaced while
 * they run. A copy works in storm_part_work.
 */

LOAD_DEFINE_WORK(storm_part)

/* "work [NAME]", "unlink PATH", "chain PATH" */
int storm_part(int argc, char **argv) {
    const char *what = argv[0];

    if (strcmp(what, "work") == 0 && argc > 1)
        (void)prctl(PR_SET_NAME, argv[1]);
    if (strcmp(what, "unlink") == 0 && argc > 1 && unlink(argv[1]) < 0)
        load_die(argv[1]);
    (void)storm_part_work((uint64_t)PART_MS * LOAD_NS_PER_MS);
    if (strcmp(what, "chain") == 0 && argc > 1) {
        (void)execl(argv[1], argv[1], STORM_PART, "work", NULL);
        load_die(argv[1]);
    }
    return EXIT_SUCCESS;
}

static void wait_for(pid_t pid) {
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static void copy_to(const char *from, int to) {
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        load_die(from);
    while (lseek(fd, 0, SEEK_CUR) < st.st_size)
        if (sendfile(to, fd, NULL, (size_t)st.st_size) <= 0)
            load_die("sendfile");
    (void)close(fd);
}

/* Replaces any file of that name by a complete copy. */
static void put_copy(const Stage *stage, const char *name, char *ret_path) {
    char temporary[PATH_BYTES + 8];
    int fd;

    (void)snprintf(ret_path, PATH_BYTES, "%s/%s", stage->folder, name);
    (void)snprintf(temporary, sizeof(temporary), "%s.new", ret_path);
    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    if (fd < 0)
        load_die(temporary);
    copy_to(stage->self, fd);
    (void)close(fd);
    if (rename(temporary, ret_path) < 0)
        load_die(ret_path);
}

/* The same copy each time, made on first use. */
static void lasting_copy(const Stage *stage, const char *name, char *ret_path) {
    (void)snprintf(ret_path, PATH_BYTES, "%s/%s", stage->folder, name);
    if (access(ret_path, X_OK) < 0)
        put_copy(stage, name, ret_path);
}

static void run(const char *path, const char *what, const char *argument) {
    (void)execl(path, path, STORM_PART, what, argument, NULL);
    load_die(path);
}

void scene_exec(const Stage *stage) {
    char path[PATH_BYTES];
    pid_t pid;

    lasting_copy(stage, "storm-exec", path);
    pid = load_fork();
    if (pid == 0)
        run(path, "work", NULL);
    wait_for(pid);
}

void scene_chain(const Stage *stage) {
    char path[PATH_BYTES], next[PATH_BYTES];
    pid_t pid;

    lasting_copy(stage, "storm-link", path);
    lasting_copy(stage, "storm-exec", next);
    pid = load_fork();
    if (pid == 0)
        run(path, "chain", next);
    wait_for(pid);
}

void scene_vfork(const Stage *stage) {
    char path[PATH_BYTES];
    pid_t pid;

    lasting_copy(stage, "storm-vfork", path);
    pid = vfork();
    if (pid == 0) {
        (void)execl(path, path, STORM_PART, "work", NULL);
        _exit(EXIT_FAILURE);
    }
    if (pid > 0)
        wait_for(pid);
}

void scene_memfd(const Stage *stage) {
    int fd = memfd_create("storm-memfd", MFD_CLOEXEC);
    char *argv[] = {(char *)"storm-memfd", (char *)STORM_PART, (char *)"work",
                    (char *)"storm-memfd", NULL};
    char *envp[] = {NULL};
    pid_t pid;

    if (fd < 0)
        load_die("memfd_create");
    copy_to(stage->self, fd);
    pid = load_fork();
    if (pid == 0) {
        (void)fexecve(fd, argv, envp);
        load_die("fexecve");
    }
    (void)close(fd);
    wait_for(pid);
}

void scene_deleted(const Stage *stage) {
    char path[PATH_BYTES];
    pid_t pid;

    put_copy(stage, "storm-deleted", path);
    pid = load_fork();
    if (pid == 0)
        run(path, "unlink", path);
    wait_for(pid);
}

/* The running program is no longer the one at its path. */
void scene_replaced(const Stage *stage) {
    char path[PATH_BYTES];
    pid_t pid;

    put_copy(stage, "storm-replaced", path);
    pid = load_fork();
    if (pid == 0)
        run(path, "work", NULL);
    load_sleep_ns(LOAD_NS_PER_MS);
    put_copy(stage, "storm-replaced", path);
    wait_for(pid);
}
