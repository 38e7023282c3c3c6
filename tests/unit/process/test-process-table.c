/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/table/table.h"

#include <sys/mman.h>

#include "make-record.h"
#include "test.h"

/* Side-band by hand, and what the table then answers. */

enum { ANY = 0x1000 };

static void feed(ProcessTable *t, Make *m, uint32_t type, uint16_t misc) {
    PdRecord record = make_record(m, type, misc);

    (void)process_table_feed(t, &record, NULL);
    make_done(m);
}

static void comm(ProcessTable *t, uint32_t pid, uint32_t tid, const char *name, bool exec) {
    Make m = {};

    u32(&m, pid);
    u32(&m, tid);
    text(&m, name, 16);
    feed(t, &m, PD_RECORD_COMM, exec ? PD_MISC_COMM_EXEC : 0);
}

static void task(ProcessTable *t, PdRecordType type, uint32_t pid, uint32_t tid, uint32_t ppid,
                 uint32_t ptid, uint16_t misc) {
    Make m = {};

    u32(&m, pid);
    u32(&m, ppid);
    u32(&m, tid);
    u32(&m, ptid);
    u64(&m, 0);
    feed(t, &m, type, misc);
}

static void forks(ProcessTable *t, uint32_t pid, uint32_t tid, uint32_t ppid, uint32_t ptid) {
    task(t, PD_RECORD_FORK, pid, tid, ppid, ptid, 0);
}

static void exits(ProcessTable *t, uint32_t pid, uint32_t tid) {
    task(t, PD_RECORD_EXIT, pid, tid, 1, 1, 0);
}

static void maps(ProcessTable *t, uint32_t pid, uint64_t start, uint64_t length, const char *name) {
    Make m = {};

    u32(&m, pid);
    u32(&m, pid);
    u64(&m, start);
    u64(&m, length);
    u64(&m, 0);
    text(&m, name, (strlen(name) + 8) / 8 * 8);
    feed(t, &m, PD_RECORD_MMAP, PD_MISC_USER);
}

static void maps2(ProcessTable *t, uint32_t pid, uint64_t start, uint32_t prot, uint32_t flags,
                  const char *name) {
    Make m = {};

    u32(&m, pid);
    u32(&m, pid);
    u64(&m, start);
    u64(&m, 0x1000);
    u64(&m, 0);
    u64(&m, 0);
    u64(&m, 0);
    u64(&m, 0);
    u32(&m, prot);
    u32(&m, flags);
    text(&m, name, (strlen(name) + 8) / 8 * 8);
    feed(t, &m, PD_RECORD_MMAP2, PD_MISC_USER);
}

static void kernel(ProcessTable *t, uint64_t start, uint64_t length, const char *name) {
    Make m = {};

    u32(&m, UINT32_MAX);
    u32(&m, 0);
    u64(&m, start);
    u64(&m, length);
    u64(&m, start);
    text(&m, name, (strlen(name) + 8) / 8 * 8);
    feed(t, &m, PD_RECORD_MMAP, PD_MISC_KERNEL);
}

static void ksymbol(ProcessTable *t, uint64_t start, uint32_t length, uint16_t flags,
                    const char *name) {
    Make m = {};

    u64(&m, start);
    u32(&m, length);
    u16(&m, 1);
    u16(&m, flags);
    text(&m, name, (strlen(name) + 8) / 8 * 8);
    feed(t, &m, PD_RECORD_KSYMBOL, 0);
}

static const char *comm_of(ProcessTable *t, uint32_t pid, uint32_t tid) {
    return (const char *)process_table_comm(t, pid, tid).name->text;
}

static const char *user_dso(ProcessTable *t, uint32_t pid, uint32_t tid, uint64_t ip) {
    return (const char *)process_table_dso(t, pid, tid, PD_MISC_USER, ip, NULL).name->text;
}

static const char *kernel_dso(ProcessTable *t, uint64_t ip) {
    return (const char *)process_table_dso(t, 1, 1, PD_MISC_KERNEL, ip, NULL).name->text;
}

static ProcessTable *table(const ProcessLimits *limits) {
    ProcessTable *t = NULL;

    (void)process_table_new(limits, &t);
    return t;
}

TEST(an_unnamed_thread_is_called_by_its_number_and_thread_0_is_the_swapper) {
    _cleanup_(process_table_freep) ProcessTable *t = table(NULL);
    ProcessAnswer a;

    CHECK_STREQ(comm_of(t, 0, 0), "swapper");
    CHECK_STREQ(comm_of(t, 7, 9), ":9");
    CHECK_STREQ(comm_of(t, -1U, -1U), ":-1");
    a = process_table_comm(t, 7, 9);
    CHECK(!a.known);
    comm(t, 7, 9, "worker", false);
    CHECK_STREQ(comm_of(t, 7, 9), "worker");
    CHECK_STREQ(comm_of(t, 7, 7), ":7");
}

TEST(a_fork_inherits_comm_and_maps_and_exec_drops_the_maps) {
    _cleanup_(process_table_freep) ProcessTable *t = table(NULL);

    comm(t, 10, 10, "sh", false);
    maps(t, 10, ANY, 0x1000, "/bin/sh");
    forks(t, 11, 11, 10, 10);
    CHECK_STREQ(comm_of(t, 11, 11), "sh");
    CHECK_STREQ(user_dso(t, 11, 11, ANY), "/bin/sh");
    comm(t, 11, 11, "ls", true);
    CHECK_STREQ(user_dso(t, 11, 11, ANY), "[unknown]");
    maps(t, 11, ANY, 0x1000, "/bin/ls");
    CHECK_STREQ(user_dso(t, 11, 11, ANY), "/bin/ls");
    CHECK_STREQ(user_dso(t, 10, 10, ANY), "/bin/sh");
}

TEST(a_comm_without_exec_keeps_the_maps) {
    _cleanup_(process_table_freep) ProcessTable *t = table(NULL);

    maps(t, 10, ANY, 0x1000, "/bin/sh");
    comm(t, 10, 10, "renamed", false);
    CHECK_STREQ(user_dso(t, 10, 10, ANY), "/bin/sh");
}

TEST(threads_share_the_mappings_of_their_process) {
    _cleanup_(process_table_freep) ProcessTable *t = table(NULL);

    comm(t, 10, 10, "java", false);
    maps(t, 10, ANY, 0x1000, "/lib/a.so");
    forks(t, 10, 12, 10, 10);
    maps(t, 10, 0x8000, 0x1000, "/lib/b.so");
    CHECK_STREQ(comm_of(t, 10, 12), "java");
    CHECK_STREQ(user_dso(t, 10, 12, ANY), "/lib/a.so");
    CHECK_STREQ(user_dso(t, 10, 12, 0x8000), "/lib/b.so");
    /* a thread that only samples tell of */
    CHECK_STREQ(user_dso(t, 10, 13, 0x8fff), "/lib/b.so");
    CHECK_STREQ(user_dso(t, 10, 13, 0x9000), "[unknown]");
}

TEST(a_fork_of_a_recorder_does_not_inherit_maps) {
    _cleanup_(process_table_freep) ProcessTable *t = table(NULL);

    comm(t, 10, 10, "sh", false);
    maps(t, 10, ANY, 0x1000, "/bin/sh");
    task(t, PD_RECORD_FORK, 11, 11, 10, 10, PD_MISC_FORK_EXEC);
    CHECK_STREQ(comm_of(t, 11, 11), "sh");
    CHECK_STREQ(user_dso(t, 11, 11, ANY), "[unknown]");
    maps(t, 12, ANY, 0x1000, "/bin/old");
    task(t, PD_RECORD_FORK, 12, 12, 12, 12, PD_MISC_FORK_EXEC);
    CHECK_STREQ(user_dso(t, 12, 12, ANY), "[unknown]");
}

TEST(a_reused_pid_inherits_nothing_from_the_old_process) {
    _cleanup_(process_table_freep) ProcessTable *t = table(NULL);

    comm(t, 1, 1, "init", false);
    comm(t, 10, 10, "old", false);
    maps(t, 10, ANY, 0x1000, "/bin/old");
    exits(t, 10, 10);
    CHECK_STREQ(comm_of(t, 10, 10), "old");
    CHECK_STREQ(user_dso(t, 10, 10, ANY), "/bin/old");
    forks(t, 10, 10, 1, 1);
    CHECK_STREQ(comm_of(t, 10, 10), "init");
    CHECK_STREQ(user_dso(t, 10, 10, ANY), "[unknown]");
}

TEST(a_parent_thread_known_in_another_process_is_replaced) {
    _cleanup_(process_table_freep) ProcessTable *t = table(NULL);

    comm(t, 10, 20, "gone", false);
    forks(t, 30, 30, 20, 20);
    CHECK_STREQ(comm_of(t, 30, 30), ":30");
}

TEST(a_new_mapping_cuts_what_it_covers) {
    _cleanup_(process_table_freep) ProcessTable *t = table(NULL);
    const ProcessMapping *m;

    maps(t, 5, 0x10000, 0x10000, "/lib/a.so");
    maps(t, 5, 0x14000, 0x1000, "/lib/b.so");
    CHECK_STREQ(user_dso(t, 5, 5, 0x13fff), "/lib/a.so");
    CHECK_STREQ(user_dso(t, 5, 5, 0x14000), "/lib/b.so");
    process_table_dso(t, 5, 5, PD_MISC_USER, 0x15000, &m);
    CHECK(m);
    CHECK_EQ(m->pgoff, 0x5000U);
    CHECK_EQ(m->end, 0x20000U);
}

TEST(kernel_modules_and_generated_code_have_the_names_that_perf_uses) {
    _cleanup_(process_table_freep) ProcessTable *t = table(NULL);

    kernel(t, 0xffffffff81000000, 0x1000000, "[kernel.kallsyms]_text");
    kernel(t, 0xffffffffc0000000, 0x8000, "/lib/modules/6.1.0/kernel/fs/nf-tables.ko.xz");
    kernel(t, 0xffffffffc0010000, 0x8000, "[ext4]");
    ksymbol(t, 0xffffffffc0020000, 0x100, 0, "bpf_prog_6deef7357e7b4530");
    ksymbol(t, 0xffffffff81000100, 0x100, 0, "bpf_trampoline_1");
    CHECK_STREQ(kernel_dso(t, 0xffffffff81000100), "[kernel.kallsyms]");
    CHECK_STREQ(kernel_dso(t, 0xffffffffc0000010), "[nf_tables]");
    CHECK_STREQ(kernel_dso(t, 0xffffffffc0010010), "[ext4]");
    CHECK_STREQ(kernel_dso(t, 0xffffffffc0020010), "bpf_prog_6deef7357e7b4530");
    CHECK_STREQ(kernel_dso(t, 0xffffffffc0030010), "[unknown]");
    ksymbol(t, 0xffffffffc0020000, 0x100, 1, "bpf_prog_6deef7357e7b4530");
    ksymbol(t, 0xffffffff81000100, 0x100, 1, "bpf_trampoline_1");
    CHECK_STREQ(kernel_dso(t, 0xffffffffc0020010), "[unknown]");
    CHECK_STREQ(kernel_dso(t, 0xffffffff81000100), "[kernel.kallsyms]");
}

TEST(a_build_id_entry_names_the_kernel) {
    _cleanup_(process_table_freep) ProcessTable *t = table(NULL);
    static const char module[] = "/lib/modules/6/x.ko", vmlinux[] = "/usr/lib/debug/vmlinux";

    process_table_feed_build_id(t, PD_MISC_KERNEL,
                                (Bytes){(const uint8_t *)module, sizeof(module)});
    process_table_feed_build_id(t, PD_MISC_USER, (Bytes){(const uint8_t *)"/bin/sh", 7});
    process_table_feed_build_id(t, PD_MISC_KERNEL,
                                (Bytes){(const uint8_t *)vmlinux, sizeof(vmlinux)});
    kernel(t, 0, 0, "[kernel.kallsyms]_stext");
    CHECK_STREQ(kernel_dso(t, 0xffffffff81000100), vmlinux);
}

TEST(guests_and_hypervisors_are_unknown) {
    _cleanup_(process_table_freep) ProcessTable *t = table(NULL);
    static const unsigned modes[] = {PD_MISC_CPUMODE_UNKNOWN, PD_MISC_HYPERVISOR,
                                     PD_MISC_GUEST_KERNEL, PD_MISC_GUEST_USER};

    kernel(t, 0, 0, "[kernel.kallsyms]_stext");
    maps(t, 5, ANY, 0x1000, "/bin/qemu");
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
        CHECK(!process_table_dso(t, 5, 5, modes[i], ANY, NULL).known);
}

TEST(generated_code_has_the_name_of_its_perf_map_file) {
    _cleanup_(process_table_freep) ProcessTable *t = table(NULL);

    maps2(t, 5, 0x1000, PROT_EXEC, 0, "//anon");
    maps2(t, 5, 0x2000, PROT_READ, 0, "//anon");
    maps2(t, 5, 0x3000, PROT_EXEC, MAP_HUGETLB, "/huge/x");
    maps2(t, 5, 0x4000, PROT_EXEC, 0, "[heap]");
    maps2(t, 5, 0x5000, PROT_EXEC, 0, "[vdso]");
    CHECK_STREQ(user_dso(t, 5, 5, 0x1000), "/tmp/perf-5.map");
    CHECK_STREQ(user_dso(t, 5, 5, 0x2000), "//anon");
    CHECK_STREQ(user_dso(t, 5, 5, 0x3000), "/tmp/perf-5.map");
    CHECK_STREQ(user_dso(t, 5, 5, 0x4000), "/tmp/perf-5.map");
    CHECK_STREQ(user_dso(t, 5, 5, 0x5000), "[vdso]");
}

TEST(a_cgroup_has_its_latest_path) {
    _cleanup_(process_table_freep) ProcessTable *t = table(NULL);

    for (int i = 0; i < 2; i++) {
        Make m = {};

        u64(&m, 77);
        text(&m, i ? "/b" : "/a", 8);
        feed(t, &m, PD_RECORD_CGROUP, 0);
    }
    CHECK_STREQ((const char *)process_table_cgroup(t, 77).name->text, "/b");
    CHECK(!process_table_cgroup(t, 78).known);
}

TEST(equal_names_and_files_are_one_object) {
    _cleanup_(process_table_freep) ProcessTable *t = table(NULL);
    ProcessCounts before = process_table_counts(t), after;

    for (uint32_t pid = 1; pid <= 1000; pid++) {
        comm(t, pid, pid, "same", false);
        maps(t, pid, ANY * pid, 0x1000, "/lib/same.so");
    }
    after = process_table_counts(t);
    CHECK_EQ(after.images, before.images + 1);
    CHECK_EQ(after.names, before.names + 2);
    CHECK_EQ(process_table_comm(t, 1, 1).name, process_table_comm(t, 1000, 1000).name);
}

TEST(exited_threads_are_kept_up_to_a_limit_and_the_oldest_is_forgotten_first) {
    ProcessLimits limits = {.exited = 100};
    _cleanup_(process_table_freep) ProcessTable *t = table(&limits);

    comm(t, 1, 1, "init", false);
    for (uint32_t pid = 2; pid < 1002; pid++) {
        forks(t, pid, pid, 1, 1);
        exits(t, pid, pid);
    }
    CHECK_EQ(process_table_counts(t).exited, 100U);
    CHECK_STREQ(comm_of(t, 1001, 1001), "init");
    CHECK_STREQ(comm_of(t, 902, 902), "init");
    CHECK_STREQ(comm_of(t, 901, 901), ":901");
}

TEST(exited_threads_are_forgotten_at_once_if_asked_for) {
    ProcessLimits limits = {.forget_exited = true};
    _cleanup_(process_table_freep) ProcessTable *t = table(&limits);

    comm(t, 5, 5, "sh", false);
    maps(t, 5, ANY, 0x1000, "/bin/sh");
    exits(t, 5, 5);
    CHECK_STREQ(comm_of(t, 5, 5), ":5");
    CHECK_STREQ(user_dso(t, 5, 5, ANY), "[unknown]");
}

TEST(a_leader_that_ended_before_its_threads_keeps_their_maps) {
    ProcessLimits limits = {.exited = 4};
    _cleanup_(process_table_freep) ProcessTable *t = table(&limits);

    comm(t, 10, 10, "main", false);
    maps(t, 10, ANY, 0x1000, "/bin/main");
    forks(t, 10, 11, 10, 10);
    exits(t, 10, 10);
    for (uint32_t pid = 100; pid < 140; pid++) {
        forks(t, pid, pid, 1, 1);
        exits(t, pid, pid);
    }
    forks(t, 10, 12, 10, 11);
    CHECK_STREQ(user_dso(t, 10, 12, ANY), "/bin/main");
    CHECK_STREQ(user_dso(t, 10, 11, ANY), "/bin/main");
}

/* Millions of forks, mappings and names, whatever they say, stay within the limit. */
TEST(hostile_side_band_stays_within_the_memory_limit_and_is_counted) {
    ProcessLimits limits = {.memory_bytes = 1 << 20};
    _cleanup_(process_table_freep) ProcessTable *t = table(&limits);
    char name[16];
    uint32_t x = 1;

    for (unsigned i = 0; i < 300000; i++) {
        x = x * 1664525 + 1013904223;
        snprintf(name, sizeof(name), "/%x", x >> 4);
        switch (x >> 29) {
        case 0:
            comm(t, i, i, name, false);
            break;
        case 1:
        case 2:
            forks(t, i, i, i - 1, i - 1);
            break;
        case 3:
            maps(t, x >> 20 & 0xff, (uint64_t)(x >> 8) << 12, ~0ULL >> (i & 63), name);
            break;
        case 4:
            kernel(t, (uint64_t)x << 12, x, name);
            break;
        case 5:
            ksymbol(t, (uint64_t)x << 12, x, i & 1, name);
            break;
        case 6:
            exits(t, i - 7, i - 7);
            break;
        default:
            forks(t, x >> 18 & 0xff, i, x >> 18 & 0xff, i - 1);
        }
        CHECK(process_table_counts(t).memory_bytes <= limits.memory_bytes);
    }
    CHECK(process_table_counts(t).dropped > 0);
    (void)comm_of(t, 1, 1);
}

TEST(truncated_records_are_refused_and_change_nothing) {
    static const uint32_t types[] = {PD_RECORD_COMM, PD_RECORD_FORK,  PD_RECORD_EXIT,
                                     PD_RECORD_MMAP, PD_RECORD_MMAP2, PD_RECORD_KSYMBOL};
    _cleanup_(process_table_freep) ProcessTable *t = table(NULL);

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        _cleanup_(make_done) Make m = {};
        PdRecord record;

        u32(&m, 3);
        record = make_record(&m, types[i], 0);
        CHECK_EQ(process_table_feed(t, &record, NULL), -EBADMSG);
    }
    CHECK_EQ(process_table_counts(t).threads, 1U);
}

TEST_MAIN()
