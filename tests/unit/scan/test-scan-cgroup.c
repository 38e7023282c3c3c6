/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/cgroup-scan.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "make-root.h"
#include "test.h"
#include "util/bytes.h"
#include "util/file.h"
#include "util/macro.h"

/* The walk of a hierarchy: of folders that a test made, and of the one that is mounted here. */

typedef struct Seen {
    size_t n;
    char all[65536]; /* "PATH;" each */
    const char *wanted;
    uint64_t id;
    size_t longest;
} Seen;

static Seen seen;

static int note(void *userdata, uint64_t id, const char *path) {
    Seen *s = userdata;
    size_t at = strlen(s->all);

    s->n++;
    s->longest = MAX(s->longest, strlen(path));
    if (at + strlen(path) + 2 < sizeof(s->all))
        snprintf(s->all + at, sizeof(s->all) - at, "%s;", path);
    if (s->wanted && strcmp(path, s->wanted) == 0)
        s->id = id;
    return 0;
}

static void begin(const char *mountinfo) {
    begin_root();
    memset(&seen, 0, sizeof(seen));
    put("/proc/self/mountinfo", mountinfo);
}

TEST(cgroups_are_listed_parents_first_with_full_paths) {
    begin("21 1 0:20 / /proc rw - proc proc rw\n"
          "30 1 0:28 / /sys/fs/cgroup\\040two rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
    put_folder("/sys/fs/cgroup two/a.slice/b c");
    put_folder("/sys/fs/cgroup two/.hidden");
    put("/sys/fs/cgroup two/a.slice/cgroup.procs", "");
    CHECK_OK(cgroup_walk(root, note, &seen));
    CHECK_EQ(seen.n, 4U);
    CHECK(strncmp(seen.all, "/;", 2) == 0);
    CHECK(strstr(seen.all, ";/a.slice;/a.slice/b c;") != NULL);
    CHECK(strstr(seen.all, ";/.hidden;") != NULL);
    end_root();
}

TEST(a_link_is_not_followed) {
    char from[128];

    begin("30 1 0:28 / /cg rw - cgroup2 cgroup2 rw\n");
    put_folder("/cg/a");
    snprintf(from, sizeof(from), "%s/cg/loop", root);
    CHECK_OK(symlink("..", from));
    CHECK_OK(cgroup_walk(root, note, &seen));
    CHECK_STREQ(seen.all, "/;/a;");
    end_root();
}

TEST(paths_below_a_partial_mount_begin_at_the_root_of_the_tree) {
    begin("30 1 0:28 /docker/abc /cg rw - cgroup2 cgroup2 rw\n");
    put_folder("/cg/inner");
    CHECK_OK(cgroup_walk(root, note, &seen));
    CHECK_STREQ(seen.all, "/docker/abc;/docker/abc/inner;");
    end_root();
}

TEST(without_a_mounted_tree_the_walk_fails) {
    begin("30 1 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
          "31 1 0:29 /x - cgroup2 /y rw - tmpfs a b\n");
    CHECK_EQ(cgroup_walk(root, note, &seen), -ENOENT);
    CHECK_EQ(seen.n, 0U);
    end_root();
}

TEST(a_version_1_hierarchy_is_walked_if_perf_events_use_it) {
    begin("30 1 0:28 / /two rw - cgroup2 cgroup2 rw\n"
          "31 1 0:29 /lxc/x /one rw - cgroup cgroup rw,perf_event\n");
    put_folder("/two/wrong");
    put_folder("/one/right");
    CHECK_OK(cgroup_walk(root, note, &seen));
    CHECK_STREQ(seen.all, "/lxc/x;/lxc/x/right;");
    end_root();
}

TEST(a_deep_hierarchy_is_walked_up_to_the_limit) {
    char path[4096] = "/cg";

    begin("30 1 0:28 / /cg rw - cgroup2 cgroup2 rw\n");
    for (unsigned i = 0; i < 200; i++)
        strcat(path, "/d");
    put_folder(path);
    CHECK_OK(cgroup_walk(root, note, &seen));
    CHECK_EQ(seen.n, (size_t)CGROUP_DEPTH_MAX + 1);
    CHECK_EQ(seen.longest, (size_t)2 * CGROUP_DEPTH_MAX);
    end_root();
}

static int refuse(void *userdata, uint64_t id, const char *path) {
    (void)note(userdata, id, path);
    return -ECANCELED;
}

TEST(a_callback_can_end_the_walk) {
    begin("30 1 0:28 / /cg rw - cgroup2 cgroup2 rw\n");
    put_folder("/cg/a/b");
    CHECK_EQ(cgroup_walk(root, refuse, &seen), -ECANCELED);
    CHECK_EQ(seen.n, 1U);
    end_root();
}

/* The kernel's own hierarchy, wherever it is mounted. */
TEST(an_id_is_the_inode_of_the_cgroup) {
    char mount[512] = "", line[4096], path[600];
    FILE *f = fopen("/proc/self/mountinfo", "re");
    struct stat st;

    memset(&seen, 0, sizeof(seen));
    while (f && fgets(line, sizeof(line), f))
        if (strstr(line, " - cgroup2 "))
            (void)sscanf(line, "%*s %*s %*s %*s %511s", mount);
    if (f)
        fclose(f);
    snprintf(path, sizeof(path), "%s/test-scan-%d", mount, (int)getpid());
    if (mount[0] == '\0' || mkdir(path, 0700) < 0)
        TEST_SKIP("no root, so no cgroup to make");
    seen.wanted = path + strlen(mount);
    (void)cgroup_walk("", note, &seen);
    (void)stat(path, &st);
    (void)rmdir(path);
    CHECK(seen.id != 0);
    CHECK_EQ(seen.id, (uint64_t)st.st_ino);
}

TEST_MAIN()
