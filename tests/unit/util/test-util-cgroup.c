/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/cgroup.h"

#include "make-root.h"
#include "test.h"

/* Hosts with one tree of control groups, with two and with none, told by made-up files of /proc. */

static CgroupTree tree;

/* cgroups NULL: the kernel has no such file. */
static int find(const char *mountinfo, const char *cgroups) {
    int r;

    begin_root();
    put("/proc/self/mountinfo", mountinfo);
    if (cgroups)
        put("/proc/cgroups", cgroups);
    memset(&tree, 0, sizeof(tree));
    r = cgroup_tree_find(root, &tree);
    end_root();
    return r;
}

#define V2     "30 1 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V2_TOO "31 1 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
#define CPU    "32 1 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
#define PERF   "33 1 0:31 / /sys/fs/cgroup/perf_event rw - cgroup cgroup rw,perf_event\n"
#define BOTH   "34 1 0:32 / /cg/both rw - cgroup cgroup rw,net_cls,perf_event,net_prio\n"
#define OTHER  "35 1 0:33 / /cg/x rw - cgroup cgroup rw,perf_event_x,xperf_event\n"

TEST(a_host_with_version_2_uses_version_2) {
    CHECK_OK(find(V2, "#subsys_name\thierarchy\tnum_cgroups\tenabled\nperf_event\t0\t1\t1\n"));
    CHECK_EQ(tree.version, 2U);
    CHECK_STREQ(tree.mount, "/sys/fs/cgroup");
    CHECK_STREQ(tree.top, "");
    CHECK_OK(find(V2, NULL));
    CHECK_EQ(tree.version, 2U);
}

TEST(version_2_is_used_unless_perf_event_is_a_controller_of_version_1) {
    CHECK_OK(find(CPU OTHER V2_TOO, NULL));
    CHECK_EQ(tree.version, 2U);
    CHECK_STREQ(tree.mount, "/sys/fs/cgroup/unified");
    CHECK_OK(find(CPU V2_TOO PERF, NULL));
    CHECK_EQ(tree.version, 1U);
    CHECK_STREQ(tree.mount, "/sys/fs/cgroup/perf_event");
    CHECK_OK(find(BOTH V2_TOO, NULL));
    CHECK_EQ(tree.version, 1U);
    CHECK_STREQ(tree.mount, "/cg/both");
}

TEST(a_hidden_mount_of_perf_event_rules_out_version_2) {
    CHECK_EQ(find(V2, "cpu\t3\t1\t1\nperf_event\t7\t1\t1\n"), -ENOENT);
    CHECK_OK(find(V2 PERF, "perf_event\t7\t1\t1\n"));
    CHECK_EQ(tree.version, 1U);
}

TEST(without_a_mount_no_tree_is_found) {
    CHECK_EQ(find("", NULL), -ENOENT);
    CHECK_EQ(find(CPU OTHER, NULL), -ENOENT);
    CHECK_EQ(find("x\n - \n- cgroup2 - cgroup2\n1 2 3 4 - cgroup2 a b\n1 2 3 4 5 - cgroup2", NULL),
             -ENOENT);
}

TEST(partial_mounts_and_blanks_in_names_are_parsed) {
    CHECK_OK(find("1 1 0:1 /docker/a\\040b /c\\134g\\040x rw - cgroup2 n rw\n", NULL));
    CHECK_STREQ(tree.mount, "/c\\g x");
    CHECK_STREQ(tree.top, "/docker/a b");
    CHECK_OK(find("1 1 0:1 /../.. /cg rw - cgroup2 n rw\n", NULL));
    CHECK_STREQ(tree.top, "");
}

TEST(a_group_is_found_below_a_partial_mount_of_the_tree) {
    CgroupTree part = {.version = 2, .mount = "/sys/fs/cgroup", .top = "/payload"};

    CHECK_STREQ(cgroup_below_mount(&part, "payload/system.slice/shop.service"),
                "system.slice/shop.service");
    CHECK(!cgroup_below_mount(&part, "payloads/shop.service"));
    CHECK(!cgroup_below_mount(&part, "payload"));
    CHECK(!cgroup_below_mount(&part, "system.slice"));
    part.top[0] = '\0';
    CHECK(!cgroup_below_mount(&part, "payload/system.slice"));
}

TEST(an_endless_line_does_not_hide_later_lines) {
    static char text[100000];

    memset(text, 'x', 70000);
    strcpy(text + 70000, " - cgroup cgroup rw,perf_event\n" V2);
    CHECK_OK(find(text, NULL));
    CHECK_EQ(tree.version, 2U);
}

TEST_MAIN()
