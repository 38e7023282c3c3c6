/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recorder/memory-limit.h"

#include "config/config.h"

#include "make-root.h"
#include "test.h"

#define MIB (1ULL << 20)

static uint64_t limit_of(const char *group) {
    uint64_t limit;

    put("/proc/self/cgroup", group);
    limit = memory_limit(root, NULL);
    end_root();
    return limit;
}

TEST(without_control_groups_there_is_no_limit) {
    begin_root();
    CHECK_EQ(memory_limit(root, NULL), 0);
    end_root();
}

TEST(the_lowest_limit_of_all_parent_groups_counts) {
    begin_root();
    put("/sys/fs/cgroup/a.slice/b.service/memory.max", "max\n");
    put("/sys/fs/cgroup/a.slice/b.service/memory.high", "50000000\n");
    put("/sys/fs/cgroup/a.slice/memory.max", "40000000\n");
    put("/sys/fs/cgroup/a.slice/memory.high", "max\n");
    CHECK_EQ(limit_of("0::/a.slice/b.service\n"), 40000000);
}

TEST(the_root_of_a_container_has_a_limit_too) {
    begin_root();
    put("/sys/fs/cgroup/memory.max", "30000000\n");
    CHECK_EQ(limit_of("0::/\n"), 30000000);
}

TEST(a_limit_of_max_at_every_level_means_no_limit) {
    begin_root();
    put("/sys/fs/cgroup/a/memory.max", "max\n");
    CHECK_EQ(limit_of("0::/a\n"), 0);
}

TEST(a_memory_controller_of_version_1_wins_over_version_2) {
    begin_root();
    put("/sys/fs/cgroup/a/memory.max", "10000000\n");
    put("/sys/fs/cgroup/memory/b/memory.limit_in_bytes", "20000000\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK_EQ(limit_of("5:cpu,cpuacct:/c\n4:hugetlb,memory:/b\n0::/a\n"), 20000000);
}

TEST(a_named_hierarchy_called_memory_does_not_count) {
    begin_root();
    put("/sys/fs/cgroup/memory/b/memory.limit_in_bytes", "20000000\n");
    CHECK_EQ(limit_of("4:memoryless,xmemory:/b\n"), 0);
}

TEST(a_malformed_limit_is_ignored) {
    const char *rows[] = {"", "\n", ":\n", "0:\n", "0::/../x\n", "0::/none\n", "::::\n"};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin_root();
        put("/sys/fs/cgroup/x/memory.max", "-1\n");
        CHECK_EQ(limit_of(rows[i]), 0);
    }
}

TEST(killed_processes_are_counted) {
    uint64_t kills = 7;

    begin_root();
    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/memory.events",
        "low 0\nhigh 3\nmax 5\noom 2\noom_kill 4\noom_group_kill 0\n");
    (void)memory_limit(root, &kills);
    end_root();
    CHECK_EQ(kills, 4);
}

TEST(the_memory_of_a_host_is_limited_by_its_container) {
    /* clang-format off */
    static const struct { const char *group, *file; uint64_t limit_mib, expected_mib; } rows[] = {
        { "0::/\n",                         NULL,                                                  0,    4096 },
        { "0::/\n",                         "/sys/fs/cgroup/memory.max",                           1024, 1024 },
        { "0::/\n",                         "/sys/fs/cgroup/memory.max",                           8192, 4096 },
        { "0::/system.slice/p.service\n",   "/sys/fs/cgroup/memory.max",                           1024, 1024 },
        { "0::/system.slice/p.service\n",   "/sys/fs/cgroup/system.slice/memory.high",             512,  512  },
        { "0::/system.slice/p.service\n",   "/sys/fs/cgroup/system.slice/p.service/memory.max",    512,  4096 },
        { "0::/p\n",                        "/sys/fs/cgroup/p/memory.max",                         512,  4096 },
        { "4:memory:/p\n",                  "/sys/fs/cgroup/memory/p/memory.limit_in_bytes",       512,  4096 },
        { "4:memory:/q/p\n",                "/sys/fs/cgroup/memory/q/memory.limit_in_bytes",       512,  512  },
        { "4:memory:/\n",                   "/sys/fs/cgroup/memory/memory.limit_in_bytes",         512,  512  },
        { "nonsense",                       "/sys/fs/cgroup/memory.max",                           512,  4096 },
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[32];

        begin_root();
        put("/proc/meminfo", "MemTotal:        4194304 kB\nMemFree:          100 kB\n");
        put("/proc/self/cgroup", rows[i].group);
        snprintf(text, sizeof(text), "%llu\n", (unsigned long long)(rows[i].limit_mib * MIB));
        if (rows[i].file)
            put(rows[i].file, text);
        CHECK_EQ(memory_of_host(root), rows[i].expected_mib * MIB);
        end_root();
    }
    begin_root();
    CHECK_EQ(memory_of_host(root), 0);
    put("/proc/meminfo", "MemTotal: many kB\n");
    CHECK_EQ(memory_of_host(root), 0);
    end_root();
}

TEST(rings_may_take_a_256th_of_the_memory_and_at_least_16m) {
    CHECK_EQ(memory_for_rings(CONFIG_BUILT_IN, 0), 16 * MIB);
    CHECK_EQ(memory_for_rings(CONFIG_BUILT_IN, 512 * MIB), 16 * MIB);
    CHECK_EQ(memory_for_rings(CONFIG_BUILT_IN, 16 * 1024 * MIB), 64 * MIB);
    CHECK_EQ(memory_for_rings(CONFIG_BUILT_IN, 256 * 1024 * MIB), 1024 * MIB);
    CHECK_EQ(memory_for_rings(CONFIG_BUILT_IN, UINT64_MAX), 64 * 1024 * MIB);
    CHECK_EQ(memory_for_rings(CONFIG_PERCENT | 2, 1000 * MIB), 1000 * MIB / 100 * 2);
    CHECK_EQ(memory_for_rings(MIB, 512 * MIB), MIB);
}

TEST(without_a_limit_everything_has_its_full_size) {
    MemoryPlan plan = memory_plan(0, 3, 64 * MIB);

    CHECK(!plan.is_small);
    CHECK_EQ(plan.table_bytes, 0);
    CHECK_EQ(plan.queue_bytes, 0);
    CHECK_EQ(plan.store_bytes, 0);
    CHECK_EQ(plan.unwind_bytes, 0);
}

/* Two tables while a snapshot is made, and the quarter that a queue may be larger. */
static uint64_t most_of(const MemoryPlan *plan) {
    return 2 * plan->table_bytes + plan->queue_bytes / 4 * 5 + plan->store_bytes +
           plan->unwind_bytes;
}

TEST(the_plan_fits_into_the_limit) {
    for (uint64_t limit = 16; limit <= 1024; limit++) {
        MemoryPlan disk = memory_plan(limit * MIB, 0, 0);
        MemoryPlan memory = memory_plan(limit * MIB, 0, 64 * MIB);

        CHECK(most_of(&disk) <= limit * MIB - 8 * MIB);
        CHECK(most_of(&memory) <= limit * MIB - 8 * MIB);
    }
}

TEST(only_a_small_limit_changes_the_plan) {
    CHECK(!memory_plan(256 * MIB, 0, 64 * MIB).is_small);
    CHECK(!memory_plan(128 * MIB, 0, 0).is_small);
    CHECK(memory_plan(64 * MIB, 0, 0).is_small);
    CHECK(memory_plan(96 * MIB, 0, 64 * MIB).is_small);
}

TEST(unwind_tables_take_at_most_64m_and_less_under_a_limit) {
    CHECK_EQ(memory_plan(1024 * MIB, 0, 0).unwind_bytes, 64 * MIB);
    CHECK_EQ(memory_plan(1024 * MIB, 0, 64 * MIB).unwind_bytes, 64 * MIB);
    CHECK_EQ(memory_plan(128 * MIB, 0, 0).unwind_bytes, 16 * MIB);
    CHECK(memory_plan(32 * MIB, 3, 0).unwind_bytes > 0);
}

TEST(the_plan_is_smaller_after_each_kill) {
    uint64_t before = UINT64_MAX;

    for (uint64_t kills = 0; kills < 4; kills++) {
        MemoryPlan plan = memory_plan(256 * MIB, kills, 64 * MIB);

        CHECK(most_of(&plan) < before);
        CHECK(plan.is_small == (kills > 0));
        before = most_of(&plan);
    }
    CHECK(memory_plan(256 * MIB, UINT64_MAX, 64 * MIB).table_bytes >= MIB);
}

TEST_MAIN()
