/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dlfcn.h>
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load.h"
#include "storm.h"

/*
 * Scenes that stay in this program: children that keep or change their names, threads that outlive
 * their leader, code that is made or loaded at run time, pids that come again, pid namespaces.
 */

enum { PART_NS = PART_MS * LOAD_NS_PER_MS, N_NAMES = 3 };

LOAD_DEFINE_WORK(storm_inherit)
LOAD_DEFINE_WORK(storm_fork)
LOAD_DEFINE_WORK(storm_name_a)
LOAD_DEFINE_WORK(storm_name_b)
LOAD_DEFINE_WORK(storm_leader)
LOAD_DEFINE_WORK(storm_thread)
LOAD_DEFINE_WORK(storm_first)
LOAD_DEFINE_WORK(storm_second)
LOAD_DEFINE_WORK(storm_space)

static void name(const char *text) {
    (void)prctl(PR_SET_NAME, text);
}

static void wait_for(pid_t pid) {
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        continue;
}

void scene_inherit(const Stage *stage) {
    pid_t pid = load_fork();

    (void)stage;
    if (pid == 0)
        _exit((int)storm_inherit_work(PART_NS) & 0);
    wait_for(pid);
}

void scene_fork(const Stage *stage) {
    pid_t pid = load_fork();

    (void)stage;
    if (pid == 0) {
        name("storm-fork");
        _exit((int)storm_fork_work(PART_NS) & 0);
    }
    wait_for(pid);
}

void scene_name(const Stage *stage) {
    pid_t pid = load_fork();

    (void)stage;
    for (unsigned i = 0; pid == 0 && i < N_NAMES; i++) {
        name("storm-name-a");
        (void)storm_name_a_work(PART_NS);
        name("storm-name-b");
        (void)storm_name_b_work(PART_NS);
    }
    if (pid == 0)
        _exit(EXIT_SUCCESS);
    wait_for(pid);
}

static void *survive(void *unused) {
    name("storm-thread");
    (void)storm_thread_work(3 * PART_NS);
    return unused;
}

/* The leader is gone while its threads work; the process ends with the last of them. */
void scene_thread(const Stage *stage) {
    pid_t pid = load_fork();
    pthread_t thread;

    (void)stage;
    if (pid == 0) {
        name("storm-leader");
        for (unsigned i = 0; i < 2; i++)
            if (pthread_create(&thread, NULL, survive, NULL) != 0)
                _exit(EXIT_FAILURE);
        (void)storm_leader_work(PART_NS);
        pthread_exit(NULL);
    }
    wait_for(pid);
}

/* A loop that counts its argument down to 0, as machine code. */
#if defined(__x86_64__)
static const uint8_t countdown[] = {0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3};
#elif defined(__aarch64__)
static const uint32_t countdown[] = {0xf1000400, 0x54ffffe1, 0xd65f03c0};
#else
static const uint8_t countdown[] = {0};
#endif

static void run_made_code(void) {
    void *p =
        mmap(NULL, sizeof(countdown), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void (*code)(uint64_t);

    if (sizeof(countdown) == 1 || p == MAP_FAILED)
        _exit(EXIT_FAILURE);
    memcpy(p, countdown, sizeof(countdown));
    if (mprotect(p, sizeof(countdown), PROT_READ | PROT_EXEC) < 0)
        _exit(EXIT_FAILURE);
    __builtin___clear_cache(p, (char *)p + sizeof(countdown));
    memcpy(&code, &p, sizeof(code));
    code(10 * LOAD_NS_PER_MS);
}

void scene_code(const Stage *stage) {
    pid_t pid = load_fork();

    (void)stage;
    if (pid == 0) {
        name("storm-code");
        run_made_code();
        _exit(EXIT_SUCCESS);
    }
    wait_for(pid);
}

void scene_plugin(const Stage *stage) {
    pid_t pid = load_fork();
    void *library, *symbol;
    uint64_t (*work)(uint64_t);

    if (pid > 0) {
        wait_for(pid);
        return;
    }
    name("storm-plugin");
    library = dlopen(stage->plugin, RTLD_NOW);
    symbol = library ? dlsym(library, "storm_plugin") : NULL;
    if (!symbol)
        load_die(stage->plugin);
    memcpy(&work, &symbol, sizeof(work));
    (void)work(PART_NS);
    (void)dlclose(library);
    _exit(EXIT_SUCCESS);
}

/* A child with the pid of one that has just ended; -1 where somebody else has taken it. */
static pid_t fork_as(pid_t pid) {
    struct clone_args args = {
        .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};

    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

void scene_reuse(const Stage *stage) {
    pid_t pid = load_fork(), again;

    (void)stage;
    if (pid == 0) {
        name("storm-first");
        _exit((int)storm_first_work(PART_NS) & 0);
    }
    wait_for(pid);
    again = fork_as(pid);
    if (again == 0) {
        name("storm-second");
        _exit((int)storm_second_work(PART_NS) & 0);
    }
    if (again > 0)
        wait_for(again);
}

/* The first process of a pid namespace, and one that it forks. */
static int enter_space(void *unused) {
    pid_t pid;

    (void)unused;
    name("storm-space");
    pid = fork();
    (void)storm_space_work(PART_NS);
    if (pid > 0)
        wait_for(pid);
    _exit(EXIT_SUCCESS);
}

void scene_space(const Stage *stage) {
    static char stack[64 << 10] __attribute__((aligned(16)));
    pid_t pid = clone(enter_space, stack + sizeof(stack), CLONE_NEWPID | SIGCHLD, NULL);

    (void)stage;
    if (pid > 0)
        wait_for(pid);
}
