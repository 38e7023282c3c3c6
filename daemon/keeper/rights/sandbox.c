/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/rights/sandbox.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "keeper/rights/capability.h"
#include "util/file.h"
#include "util/log.h"
#include "util/macro.h"

/*
 * Tables of what is kept and what is refused: capabilities, system calls, namespaces and sockets.
 * The bounding set is emptied in the keeper already: the keeper executes only programs without
 * rights, and its own rights do not depend on that set. Without root there are no capabilities to
 * drop; everything else applies too. System calls that both read and change (adjtimex, which
 * reports whether the clock is synchronised) are allowed, since a change needs a capability.
 *
 * In a namespace of its own a process would have all rights, and could attack most of the kernel's
 * code with them. clone3() has its flags in memory, where no filter can check them, so it fails as
 * on a kernel without it, and the C library uses clone(). Allowed sockets are local ones (unix),
 * and the kernel's messages about CPUs.
 */

enum {
    NOFILE_WANTED = 1 << 20,
    ELF_MEMORY_BYTES = 256 << 20, /* eight times the largest table that it makes */
    ELF_FILE_BYTES = 32 << 20,    /* the largest memfd; it writes no other file */
    ELF_DESCRIPTORS = 64,
};

/* Kinds of helpers. */
enum { OPENER = 1 << 0, SEALER = 1 << 1, MAPS = 1 << 2 };

/* clang-format off */
static const struct CapabilityRow {
    unsigned    capability;
    unsigned    helpers; /* those that keep it too */
    bool        missed;  /* logged if it is missing */
    const char *name;
} capabilities[] = {
    { CAP_SYS_ADMIN,       OPENER,        true,  "CAP_SYS_ADMIN"       },
    { CAP_PERFMON,         0,             true,  "CAP_PERFMON"         },
    { CAP_SYS_PTRACE,      OPENER | MAPS, true,  "CAP_SYS_PTRACE"      },
    { CAP_DAC_READ_SEARCH, OPENER,        true,  "CAP_DAC_READ_SEARCH" },
    { CAP_SYSLOG,          OPENER,        true,  "CAP_SYSLOG"          },
    { CAP_CHOWN,           SEALER,        false, "CAP_CHOWN"           },
    { CAP_SETUID,          SEALER,        false, "CAP_SETUID"          },
    { CAP_SETGID,          0,             false, "CAP_SETGID"          },
    { CAP_KILL,            0,             false, "CAP_KILL"            },
};

/* LeakSanitizer inspects its own process with ptrace. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PTRACE_IS_NEEDED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define PTRACE_IS_NEEDED 1
#endif

static const struct SystemCallRow {
    const char *name;
    bool        keeper; /* denied to the keeper too */
} denied[] = {
#ifndef PTRACE_IS_NEEDED
    { "ptrace",             true  },
#endif
    { "process_vm_readv",   true  },
    { "process_vm_writev",  true  },
    { "pidfd_getfd",        true  },
    { "kcmp",               true  },
    { "execve",             false },
    { "execveat",           false },
    { "perf_event_open",    false },
    { "bpf",                false },
    { "userfaultfd",        false },
    { "io_uring_setup",     false },
    { "mount",              false },
    { "umount2",            false },
    { "move_mount",         false },
    { "open_tree",          false },
    { "fsopen",             false },
    { "fspick",             false },
    { "mount_setattr",      false },
    { "pivot_root",         false },
    { "chroot",             false },
    { "setns",              true  },
    { "unshare",            true  },
    { "init_module",        false },
    { "finit_module",       false },
    { "delete_module",      false },
    { "kexec_load",         false },
    { "kexec_file_load",    false },
    { "reboot",             false },
    { "swapon",             false },
    { "swapoff",            false },
    { "acct",               false },
    { "quotactl",           false },
    { "settimeofday",       false },
    { "clock_settime",      false },
    { "sethostname",        false },
    { "setdomainname",      false },
    { "iopl",               false },
    { "ioperm",             false },
    { "add_key",            false },
    { "request_key",        false },
    { "keyctl",             false },
    { "open_by_handle_at",  false },
    { "process_madvise",    false },
    { "move_pages",         false },
    { "migrate_pages",      false },
};

static const uint64_t namespaces[] = {
    CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
    CLONE_NEWPID, CLONE_NEWUSER,   CLONE_NEWNET,
};
/* clang-format on */

/* The index of the flags among the arguments of clone(). */
#ifdef __s390__
enum { CLONE_FLAGS = 1 };
#else
enum { CLONE_FLAGS = 0 };
#endif

static void sandbox_raise_limit(__rlimit_resource_t resource, rlim_t wanted) {
    struct rlimit limit;

    if (getrlimit(resource, &limit) < 0)
        return;
    if (limit.rlim_max < wanted && limit.rlim_max != RLIM_INFINITY) {
        struct rlimit more = {.rlim_cur = wanted, .rlim_max = wanted};

        if (setrlimit(resource, &more) == 0)
            return;
    }
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(resource, &limit);
}

void sandbox_raise_limits(void) {
    sandbox_raise_limit(RLIMIT_MEMLOCK, RLIM_INFINITY);
    sandbox_raise_limit(RLIMIT_NOFILE, NOFILE_WANTED);
}

static bool sandbox_is_locking_limited(void) {
    struct rlimit limit;

    return getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur != RLIM_INFINITY;
}

/* Rings count as locked memory, unless the process may lock any amount. */
static uint64_t sandbox_locking_right(void) {
    return sandbox_is_locking_limited() ? 1ULL << CAP_IPC_LOCK : 0;
}

bool sandbox_may_lock(void) {
    char paranoid[16];

    return !sandbox_is_locking_limited() || capabilities_permitted() & 1ULL << CAP_IPC_LOCK ||
           (file_read_text("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid)) >=
                0 &&
            strncmp(paranoid, "-1", 2) == 0);
}

void sandbox_log_missing(void) {
    char names[256] = "", paranoid[16] = "unknown";
    uint64_t have = capabilities_permitted();

    for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++) {
        size_t n = strlen(names);

        if (capabilities[i].missed && !(have & 1ULL << capabilities[i].capability))
            snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "", capabilities[i].name);
    }
    if (names[0] == '\0')
        return;
    (void)file_read_text("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid));
    log_notice(
        "Running without %s while kernel.perf_event_paranoid is %s, so other users' processes "
        "or whole CPUs may be out of reach, start profd as root to record them",
        names, paranoid);
}

static int sandbox_keep(uint64_t set) {
    return capabilities_limit(set & capabilities_permitted());
}

static int sandbox_deny_calls(scmp_filter_ctx filter, bool is_keeper) {
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(denied); i++) {
        int number = seccomp_syscall_resolve_name(denied[i].name);

        if (number != __NR_SCMP_ERROR && (denied[i].keeper || !is_keeper))
            r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
    }
    return r;
}

static struct scmp_arg_cmp sandbox_compare(unsigned argument, enum scmp_compare how,
                                           uint64_t value) {
    return (struct scmp_arg_cmp){.arg = argument, .op = how, .datum_a = value};
}

static int sandbox_deny_namespaces(scmp_filter_ctx filter) {
    int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SYS_clone3, 0);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(namespaces); i++) {
        struct scmp_arg_cmp has = sandbox_compare(CLONE_FLAGS, SCMP_CMP_MASKED_EQ, namespaces[i]);

        has.datum_b = namespaces[i];
        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, has);
    }
    return r;
}

static int sandbox_deny_family(scmp_filter_ctx filter, enum scmp_compare how, unsigned family) {
    return seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
                            sandbox_compare(0, how, family));
}

/* A rule compares an argument only once, so families between the two allowed ones are refused one
 * by one. The keeper listens to no messages about CPUs, but its filter is the recorder's as well.
 */
static int sandbox_deny_sockets(scmp_filter_ctx filter) {
    int r = sandbox_deny_family(filter, SCMP_CMP_LT, AF_UNIX);

    for (unsigned family = AF_UNIX + 1; r == 0 && family < AF_NETLINK; family++)
        r = sandbox_deny_family(filter, SCMP_CMP_EQ, family);
    if (r == 0)
        r = sandbox_deny_family(filter, SCMP_CMP_GT, AF_NETLINK);
    if (r == 0)
        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 2,
                             sandbox_compare(0, SCMP_CMP_EQ, AF_NETLINK),
                             sandbox_compare(2, SCMP_CMP_NE, NETLINK_KOBJECT_UEVENT));
    return r;
}

static int sandbox_deny(bool is_keeper) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int r;

    if (!filter)
        return -ENOMEM;
    /* System calls of another architecture have other numbers and would pass the filter. */
    r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
    if (r == 0)
        r = sandbox_deny_calls(filter, is_keeper);
    if (r == 0)
        r = sandbox_deny_namespaces(filter);
    if (r == 0)
        r = sandbox_deny_sockets(filter);
    if (r == 0)
        r = seccomp_load(filter); /* also sets no_new_privs */
    seccomp_release(filter);
    return r;
}

int sandbox_keeper(void) {
    uint64_t set = sandbox_locking_right();
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++)
        set |= 1ULL << capabilities[i].capability;
    capabilities_empty_bounding_set();
    r = sandbox_keep(set);
    return r == 0 ? sandbox_deny(true) : r;
}

static int sandbox_keep_of(unsigned helper) {
    uint64_t set = 0;

    for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++)
        if (capabilities[i].helpers & helper)
            set |= 1ULL << capabilities[i].capability;
    return sandbox_keep(set);
}

int sandbox_opener(const KeeperHost *host _unused_) {
    return sandbox_keep_of(OPENER);
}

/* The result of setfsuid() shows only in a second call, which changes nothing. */
static int sandbox_open_as_recorder(const KeeperHost *host) {
    if (setgroups(0, NULL) < 0)
        return -errno;
    (void)setfsgid(host->gid);
    (void)setfsuid(host->uid);
    return (gid_t)setfsgid(host->gid) == host->gid && (uid_t)setfsuid(host->uid) == host->uid
               ? 0
               : -EPERM;
}

int sandbox_images(const KeeperHost *host) {
    int r = host->has_user ? sandbox_open_as_recorder(host) : 0;

    return r == 0 ? sandbox_opener(host) : r;
}

int sandbox_sealer(const KeeperHost *host _unused_) {
    return sandbox_keep_of(SEALER);
}

int sandbox_closer(const KeeperHost *host _unused_) {
    return sandbox_keep(0);
}

int sandbox_maps(const KeeperHost *host _unused_) {
    return sandbox_keep_of(MAPS);
}

static int sandbox_become_user(const KeeperHost *host) {
    gid_t groups[3];
    size_t n = 0;

    groups[n++] = host->gid;
    /* The recorder's own segments belong to these groups once sealed, and it reads them again for
     * snapshots. */
    if (host->has_read_group)
        groups[n++] = host->read_group;
    if (host->has_admin_group)
        groups[n++] = host->admin_group;
    if (setgroups(n, groups) < 0 || setresgid(host->gid, host->gid, host->gid) < 0 ||
        setresuid(host->uid, host->uid, host->uid) < 0)
        return -errno;
    return 0;
}

/* AddressSanitizer needs terabytes of address space. */
static int sandbox_limit_elf(void) {
    static const struct {
        __rlimit_resource_t resource;
        rlim_t limit;
    } rows[] = {
#ifndef PTRACE_IS_NEEDED
        {RLIMIT_AS, ELF_MEMORY_BYTES},
#endif
        {RLIMIT_NOFILE, ELF_DESCRIPTORS},
        {RLIMIT_FSIZE, ELF_FILE_BYTES},
        {RLIMIT_CORE, 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct rlimit limit = {.rlim_cur = rows[i].limit, .rlim_max = rows[i].limit};

        if (setrlimit(rows[i].resource, &limit) < 0)
            return -errno;
    }
    return 0;
}

int sandbox_become_elf(const KeeperHost *host) {
    int r = sandbox_limit_elf();

    if (r < 0)
        return r;
    if (host->has_user &&
        (setgroups(0, NULL) < 0 || setresgid(host->gid, host->gid, host->gid) < 0 ||
         setresuid(host->uid, host->uid, host->uid) < 0))
        return -errno;
    return capabilities_limit(0);
}

int sandbox_become_recorder(const KeeperHost *host) {
    int r = host->has_user ? sandbox_become_user(host) : 0;

    return r == 0 ? capabilities_limit(0) : r;
}

int sandbox_recorder(void) {
    return sandbox_deny(false);
}
