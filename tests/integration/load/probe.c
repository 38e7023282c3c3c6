/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load.h"

/*
 * Makes another process call what a filter should refuse, and prints what came back: a line for
 * each system call with its name and errno, 0 for success. The arguments are such that each would
 * fail with an error of its own, or succeed, where nothing refuses it: an EPERM is the filter's.
 * With a second word it tries what a service should refuse, too: each of these does something, or
 * fails by something else than a right, in a process that may do all.
 *
 * Usage: probe PID [service]     77: not for this machine
 */

#ifdef __x86_64__

enum {
    ATTEMPTS = 200,
    INSTRUCTION = 0x050f,
    INSTRUCTION_BYTES = 2,
    STACK_BELOW = 4096, /* there is no mapping of the process */
    TEXT_MAX = 64,
    NEW_FILE = O_CREAT | O_WRONLY | O_CLOEXEC,
    WRITE_EXECUTE = PROT_WRITE | PROT_EXEC,
    PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS,
};

typedef struct Probe {
    const char *name;
    long number;
    unsigned long arguments[5];
    const char *text; /* written to the stack of the process; TEXT stands for its address */
} Probe;

static const unsigned long TEXT = 0x7e57;

/* clang-format off */
static const Probe probes[] = {
    {"getppid",           SYS_getppid,           {0}, NULL},
    {"ptrace",            SYS_ptrace,            {PTRACE_PEEKDATA, 0, 0, 0}, NULL},
    {"process_vm_readv",  SYS_process_vm_readv,  {1, 0, 0, 0, 0}, NULL},
    {"process_vm_writev", SYS_process_vm_writev, {1, 0, 0, 0, 0}, NULL},
    {"pidfd_getfd",       SYS_pidfd_getfd,       {~0UL, 0, 0}, NULL},
    {"kcmp",              SYS_kcmp,              {0, 0, 0, 0, 0}, NULL},
    /* No new user namespace may share its root folder, so that it would fail without a filter. */
    {"clone-user",        SYS_clone,             {CLONE_NEWUSER | CLONE_FS, 0, 0, 0, 0}, NULL},
    {"clone-mount",       SYS_clone,             {CLONE_NEWNS | CLONE_FS, 0, 0, 0, 0}, NULL},
    {"clone3",            SYS_clone3,            {0, 0}, NULL},
    {"unshare",           SYS_unshare,           {~0UL}, NULL},
    {"setns",             SYS_setns,             {~0UL, 0}, NULL},
    {"socket-inet",       SYS_socket,            {AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0}, NULL},
    {"socket-inet6",      SYS_socket,            {AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0}, NULL},
    {"socket-packet",     SYS_socket,            {AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0}, NULL},
    {"socket-alg",        SYS_socket,            {AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0}, NULL},
    {"socket-vsock",      SYS_socket,            {AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0}, NULL},
    {"socket-route",      SYS_socket,            {AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE}, NULL},
    {"socket-none",       SYS_socket,            {AF_UNSPEC, SOCK_STREAM | SOCK_CLOEXEC, 0}, NULL},
};

#define OPEN(name, path, flags) {name, SYS_openat, {(unsigned long)AT_FDCWD, TEXT, flags, 0600}, path}

static const Probe of_services[] = {
    OPEN("write-etc",       "/etc/profd-probe",                           NEW_FILE),
    OPEN("write-usr",       "/usr/profd-probe",                           NEW_FILE),
    OPEN("write-var",       "/var/lib/profd-probe",                       NEW_FILE),
    OPEN("write-run",       "/run/profd-probe",                           NEW_FILE),
    OPEN("write-sysctl",    "/proc/sys/kernel/perf_event_paranoid",       O_WRONLY),
    OPEN("write-cgroup",    "/sys/fs/cgroup/cgroup.procs",                O_WRONLY),
    OPEN("read-home",       "/root/profd-secret",                         O_RDONLY),
    OPEN("read-tmp",        "/tmp/profd-secret",                          O_RDONLY),
    OPEN("read-kmsg",       "/dev/kmsg",                                  O_RDONLY),
    {"unshare-mount",       SYS_unshare,         {CLONE_NEWNS}, NULL},
    {"unshare-user",        SYS_unshare,         {CLONE_NEWUSER}, NULL},
    {"setns",               SYS_setns,           {~0UL, CLONE_NEWNET}, NULL},
    {"mount",               SYS_mount,           {0, 0, 0, 0, 0}, NULL},
    {"move_mount",          SYS_move_mount,      {~0UL, 0, ~0UL, 0, 0}, NULL},
    {"pivot_root",          SYS_pivot_root,      {0, 0}, NULL},
    {"chroot",              SYS_chroot,          {TEXT}, "/"},
    {"mknod",               SYS_mknodat,         {(unsigned long)AT_FDCWD, TEXT, 020600, 0x103}, "/run/profd/null"},
    {"init_module",         SYS_init_module,     {0, 0, 0}, NULL},
    {"delete_module",       SYS_delete_module,   {0, 0}, NULL},
    {"kexec_load",          SYS_kexec_load,      {0, ~0UL, 0, 0}, NULL},
    {"reboot",              SYS_reboot,          {0, 0, 0, 0}, NULL},
    {"swapon",              SYS_swapon,          {0, 0}, NULL},
    {"acct",                SYS_acct,            {TEXT}, "/proc"},
    {"bpf",                 SYS_bpf,             {~0UL, 0, 0}, NULL},
    {"io_uring_setup",      SYS_io_uring_setup,  {0, 0}, NULL},
    {"userfaultfd",         SYS_userfaultfd,     {~0UL}, NULL},
    {"add_key",             SYS_add_key,         {0, 0, 0, 0, 0}, NULL},
    {"settimeofday",        SYS_settimeofday,    {0, 0}, NULL},
    {"clock_settime",       SYS_clock_settime,   {0, 0}, NULL},
    {"sethostname",         SYS_sethostname,     {0, ~0UL}, NULL},
    {"personality",         SYS_personality,     {ADDR_NO_RANDOMIZE}, NULL},
    {"realtime",            SYS_sched_setscheduler, {0, SCHED_FIFO, TEXT}, "\1\0\0\0"},
    {"write-and-execute",   SYS_mmap,            {0, 4096, WRITE_EXECUTE, PRIVATE, ~0UL}, NULL},
    {"internet",            SYS_socket,          {AF_INET, SOCK_STREAM, 0}, NULL},
    {"packets",             SYS_socket,          {AF_PACKET, SOCK_RAW, 0}, NULL},
};

#undef OPEN
/* clang-format on */

static void wait_for_stop(pid_t pid) {
    int status;

    while (waitpid(pid, &status, __WALL) < 0)
        if (errno != EINTR)
            load_die("waitpid");
    if (!WIFSTOPPED(status)) {
        printf("killed\n");
        exit(EXIT_SUCCESS);
    }
}

/* Right after a system call instruction, where the process waits most of the time. */
static int is_behind_call(pid_t pid, const struct user_regs_struct *regs) {
    long word = ptrace(PTRACE_PEEKTEXT, pid, regs->rip - INSTRUCTION_BYTES, NULL);

    return (word & 0xffff) == INSTRUCTION;
}

static void attach(pid_t pid, struct user_regs_struct *ret_regs) {
    for (unsigned i = 0; i < ATTEMPTS; i++) {
        if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) < 0)
            load_die("PTRACE_ATTACH");
        wait_for_stop(pid);
        if (ptrace(PTRACE_GETREGS, pid, NULL, ret_regs) < 0)
            load_die("PTRACE_GETREGS");
        if (is_behind_call(pid, ret_regs))
            return;
        (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
        load_sleep_ns(LOAD_NS_PER_MS);
    }
    fprintf(stderr, "The process never waits in a system call.\n");
    exit(EXIT_FAILURE);
}

static void lay_text(pid_t pid, unsigned long address, const char *text) {
    char bytes[TEXT_MAX] = "";
    long word;

    memcpy(bytes, text, strnlen(text, sizeof(bytes) - 1));
    for (size_t at = 0; at < sizeof(bytes); at += sizeof(word)) {
        memcpy(&word, bytes + at, sizeof(word));
        if (ptrace(PTRACE_POKEDATA, pid, address + at, word) < 0)
            load_die("PTRACE_POKEDATA");
    }
}

static long call(pid_t pid, const struct user_regs_struct *base, const Probe *probe) {
    unsigned long text = (base->rsp - STACK_BELOW) & ~15UL, arguments[5];
    struct user_regs_struct regs = *base;

    if (probe->text)
        lay_text(pid, text, probe->text);
    for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++)
        arguments[i] = probe->arguments[i] == TEXT ? text : probe->arguments[i];
    regs.rip -= INSTRUCTION_BYTES;
    regs.rax = (unsigned long)probe->number;
    regs.orig_rax = ~0UL; /* do not restart an interrupted call */
    regs.rdi = arguments[0];
    regs.rsi = arguments[1];
    regs.rdx = arguments[2];
    regs.r10 = arguments[3];
    regs.r8 = arguments[4];
    regs.r9 = 0;
    if (ptrace(PTRACE_SETREGS, pid, NULL, &regs) < 0 ||
        ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
        load_die(probe->name);
    wait_for_stop(pid);
    if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
        load_die(probe->name);
    return (long)regs.rax;
}

static void probe_each(pid_t pid, const struct user_regs_struct *regs, const Probe *rows,
                       size_t n) {
    for (size_t i = 0; i < n; i++) {
        long r = call(pid, regs, &rows[i]);

        printf("%s %ld\n", rows[i].name, r < 0 ? -r : 0);
        (void)fflush(stdout);
    }
}

static int probe_all(pid_t pid, int is_service) {
    struct user_regs_struct regs;

    attach(pid, &regs);
    probe_each(pid, &regs, probes, sizeof(probes) / sizeof(probes[0]));
    if (is_service)
        probe_each(pid, &regs, of_services, sizeof(of_services) / sizeof(of_services[0]));
    if (ptrace(PTRACE_SETREGS, pid, NULL, &regs) < 0 || ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0)
        load_die("PTRACE_DETACH");
    return EXIT_SUCCESS;
}

#else

static int probe_all(pid_t pid, int is_service) {
    (void)pid;
    (void)is_service;
    return 77;
}

#endif

int main(int argc, char **argv) {
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "Usage: probe PID [service]\n");
        return 2;
    }
    return probe_all((pid_t)load_number(argv[1]), argc == 3);
}
