/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "elf/server.h"
#include "util/macro.h"

/*
 * The system calls that remain: to read received descriptors, to answer, to get memory, to end. The
 * helper never opens a path, writes a file that has one, makes a socket, or starts a process. The
 * keeper has set the user, the limits of memory and descriptors, and no_new_privs.
 */

/* Flags of memfd_create() that are refused, such as huge pages: the reader of such a memfd could be
 * killed by SIGBUS if no huge page is free. */
#define OTHER_FLAGS (UINT32_MAX & ~(MFD_CLOEXEC | MFD_ALLOW_SEALING | 0x8U /* MFD_NOEXEC_SEAL */))

/* clang-format off */
static const struct CallRow {
    const char *name;
    unsigned    argument; /* index of the argument that is checked ... */
    uint64_t    mask;     /* ... in these bits; 0: no check */
    uint64_t    value;
} allowed[] = {
    { "recvmsg",         0, 0, 0 },
    { "sendmsg",         0, 0, 0 },
    { "pread64",         0, 0, 0 },
    { "close",           0, 0, 0 },
    { "setitimer",       0, 0, 0 },
    /* To answer with a memfd that has plain pages, is filled once, and then sealed. */
    { "memfd_create",    1, OTHER_FLAGS, 0 },
    { "pwrite64",        0, 0, 0 },
    { "fcntl",           1, UINT32_MAX, F_ADD_SEALS },
    { "clock_gettime",   0, 0, 0 },
    { "restart_syscall", 0, 0, 0 },
    /* Needed by the C library. */
    { "brk",             0, 0, 0 },
    { "mmap",            3, MAP_ANONYMOUS, MAP_ANONYMOUS },
    { "munmap",          0, 0, 0 },
    { "mremap",          0, 0, 0 }, /* realloc() of anonymous memory */
    { "futex",           0, 0, 0 },
    { "rt_sigprocmask",  0, 0, 0 },
    { "rt_sigreturn",    0, 0, 0 },
    { "getpid",          0, 0, 0 },
    { "gettid",          0, 0, 0 },
    { "tgkill",          0, 0, 0 },
    { "exit",            0, 0, 0 },
    { "exit_group",      0, 0, 0 },
};
/* clang-format on */

static int allowed_call_allow(scmp_filter_ctx filter, const struct CallRow *row) {
    int number = seccomp_syscall_resolve_name(row->name);
    struct scmp_arg_cmp compare = {.arg = row->argument,
                                   .op = SCMP_CMP_MASKED_EQ,
                                   .datum_a = row->mask,
                                   .datum_b = row->value};

    if (number == __NR_SCMP_ERROR)
        return 0;
    return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, row->mask ? 1 : 0, &compare);
}

int elf_sandbox(void) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int r = filter ? 0 : -ENOMEM;

    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        r = -errno;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(allowed); i++)
        r = allowed_call_allow(filter, &allowed[i]);
    if (r == 0)
        r = seccomp_load(filter);
    seccomp_release(filter);
    return r;
}
