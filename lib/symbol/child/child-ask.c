/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/child/child-ask.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/macro.h"

/*
 * The child keeps the descriptors of its files and of the pipe, and a few system calls: to read and
 * map those files, to get memory, and to write the reply. It opens nothing, so that libdw finds no
 * further files by names that are in this one. If it cannot be confined, it does nothing. We read
 * no more than a limit, for no longer than a limit, and then end it.
 */

enum { NOBODY = 65534, LEAST_FD = 3 };

#ifdef PROFD_SANITIZED
/* A sanitizer takes terabytes of addresses for itself. */
static const rlim_t memory_max = RLIM_INFINITY;
#else
static const rlim_t memory_max = (rlim_t)4 << 30;
#endif

/* clang-format off */
static const struct ChildCall {
    const char *name;
    unsigned    argument; /* index of the argument that is checked ... */
    uint64_t    mask;     /* ... in these bits, which must be 0; 0: no check */
} child_calls[] = {
    { "read",            0, 0 },
    { "pread64",         0, 0 },
    { "write",           0, 0 },
    { "lseek",           0, 0 },
    { "fstat",           0, 0 },
    { "fcntl",           0, 0 },
    { "close",           0, 0 },
    { "mmap",            2, PROT_EXEC },
    { "munmap",          0, 0 },
    { "mremap",          0, 0 },
    { "madvise",         0, 0 },
    { "mprotect",        2, PROT_EXEC },
    { "brk",             0, 0 },
    { "futex",           0, 0 },
    { "clock_gettime",   0, 0 },
    { "getrandom",       0, 0 },
    { "getpid",          0, 0 },
    { "gettid",          0, 0 },
    { "rt_sigprocmask",  0, 0 },
    { "rt_sigreturn",    0, 0 },
    { "restart_syscall", 0, 0 },
    { "exit",            0, 0 },
    { "exit_group",      0, 0 },
#ifdef PROFD_SANITIZED
    { "sigaltstack",     0, 0 },
#endif
};
/* clang-format on */

static int child_ask_filter(void) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int r = filter ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(child_calls); i++) {
        const struct ChildCall *row = &child_calls[i];
        struct scmp_arg_cmp compare = {
            .arg = row->argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = row->mask, .datum_b = 0};
        int number = seccomp_syscall_resolve_name(row->name);

        if (number != __NR_SCMP_ERROR)
            r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, row->mask ? 1 : 0, &compare);
    }
    if (r == 0)
        r = seccomp_load(filter);
    seccomp_release(filter);
    return r;
}

static bool child_ask_limit(int resource, rlim_t most) {
    return setrlimit(resource, &(struct rlimit){.rlim_cur = most, .rlim_max = most}) == 0;
}

/* Puts the descriptors at 3, 4 and 5 and closes all others. */
static bool child_ask_keep(int *fds, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0) {
            fds[i] = fcntl(fds[i], F_DUPFD, 64); /* out of the way */
            if (fds[i] < 0)
                return false;
        }
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0) {
            if (dup2(fds[i], LEAST_FD + (int)i) < 0)
                return false;
            fds[i] = LEAST_FD + (int)i;
        }
    return close_range(LEAST_FD + (unsigned)n, ~0U, 0) == 0;
}

static bool child_ask_confine(int *fds, size_t n, unsigned seconds) {
    if (!child_ask_keep(fds, n) || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return false;
    if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
                           setresuid(NOBODY, NOBODY, NOBODY) < 0))
        return false;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 &&
           child_ask_limit(RLIMIT_CORE, 0) && child_ask_limit(RLIMIT_CPU, seconds) &&
           child_ask_limit(RLIMIT_FSIZE, 0) && child_ask_limit(RLIMIT_AS, memory_max) &&
           child_ask_filter() == 0;
}

static _Noreturn void child_ask_run(const ChildWork *work, int to) {
    int fds[] = {work->fds[0], work->fds[1], to};

    if (child_ask_confine(fds, ARRAY_SIZE(fds), work->seconds_max))
        work->run(fds, fds[2], work->arg);
    _exit(0);
}

/* 1: more may come; 0: the end. */
static int child_ask_read(int fd, uint64_t until_ns, size_t most, Buffer *ret) {
    uint64_t now_ns = clock_monotonic_ns();
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    uint8_t *to;
    ssize_t n;

    if (now_ns >= until_ns || ret->size >= most)
        return 0;
    if (poll(&ready, 1, (int)((until_ns - now_ns) / NS_PER_MS) + 1) <= 0)
        return 1;
    to = buffer_reserve(ret, 64 << 10);
    n = to ? read(fd, to, 64 << 10) : -1;
    if (n <= 0)
        return n < 0 && errno == EINTR;
    buffer_commit(ret, (size_t)n);
    return 1;
}

static void child_ask_end(pid_t child) {
    (void)kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

int child_ask(const ChildWork *work, Buffer *ret) {
    uint64_t until_ns = clock_monotonic_ns() + work->seconds_max * NS_PER_SECOND;
    int pipes[2];
    pid_t child;

    if (pipe2(pipes, O_CLOEXEC) < 0)
        return -errno;
    child = fork();
    if (child == 0)
        child_ask_run(work, pipes[1]);
    closep(&pipes[1]);
    if (child < 0) {
        closep(&pipes[0]);
        return -EAGAIN;
    }
    while (child_ask_read(pipes[0], until_ns, work->reply_max, ret) > 0)
        ;
    closep(&pipes[0]);
    child_ask_end(child);
    return buffer_error(ret);
}
