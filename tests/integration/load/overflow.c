/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load.h"

/*
 * Floods the side-band of every CPU: maps an executable file with a path of thousands of bytes
 * again and again, so that a few hundred records fill a ring, while prctl gives new names. What
 * it is named at the end, "overflow-end", tells whether what was lost has been made good.
 *
 * Usage: overflow FOLDER SECONDS SECONDS-AFTER
 */

enum { PAGE = 4096, LEVELS = 12, LEVEL_NAME = 200 };

LOAD_DEFINE_WORK(overflow_child)
LOAD_DEFINE_WORK(overflow_end)

/* A file deep below, opened from folder to folder since no call takes so long a path. */
static int make_deep_file(const char *folder) {
    char name[LEVEL_NAME + 1];
    int at = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

    memset(name, 'x', LEVEL_NAME);
    name[LEVEL_NAME] = '\0';
    for (unsigned i = 0; i < LEVELS; i++) {
        (void)mkdirat(at, name, 0700);
        fd = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            load_die("openat");
        (void)close(at);
        at = fd;
    }
    fd = openat(at, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0700);
    if (fd < 0 || ftruncate(fd, PAGE) < 0)
        load_die("file");
    (void)close(at);
    return fd;
}

static void flood(int fd, uint64_t end_ns) {
    for (unsigned i = 0; load_now_ns() < end_ns; i++) {
        char name[16];

        for (unsigned k = 0; k < 64; k++) {
            void *p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

            if (p == MAP_FAILED)
                load_die("mmap");
            (void)munmap(p, PAGE);
        }
        (void)snprintf(name, sizeof(name), "flood-%u", i % 1000);
        (void)prctl(PR_SET_NAME, name);
    }
}

static void run(int fd, uint64_t seconds, uint64_t after) {
    uint64_t end_ns = load_now_ns() + seconds * LOAD_NS_PER_S;

    flood(fd, end_ns);
    /* Names and a process that must be known, given while the ring is likely to be full. */
    (void)prctl(PR_SET_NAME, "overflow-end");
    if (load_fork() == 0) {
        (void)prctl(PR_SET_NAME, "overflow-child");
        (void)overflow_child_work(after * LOAD_NS_PER_S);
        _exit(EXIT_SUCCESS);
    }
    (void)overflow_end_work(after * LOAD_NS_PER_S);
    _exit(EXIT_SUCCESS);
}

int main(int argc, char **argv) {
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int fd;

    if (argc != 4) {
        fprintf(stderr, "Usage: overflow FOLDER SECONDS SECONDS-AFTER\n");
        return 2;
    }
    fd = make_deep_file(argv[1]);
    for (long i = 0; i < cpus; i++)
        if (load_fork() == 0)
            run(fd, load_number(argv[2]), load_number(argv[3]));
    while (wait(NULL) > 0)
        continue;
    return EXIT_SUCCESS;
}
