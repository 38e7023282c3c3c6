/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/target.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "util/file.h"

#include "test.h"

/* In a folder of its own: what is there afterwards, and nothing else. */

static char folder[64];

static void enter(void) {
    strcpy(folder, "/tmp/profd-test.XXXXXX");
    assert(mkdtemp(folder));
    assert(chdir(folder) == 0);
}

static void leave(void) {
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    assert(chdir("/") == 0);
    assert(system(command) == 0);
}

static unsigned entries(const char *path) {
    DIR *dir = opendir(path);
    unsigned n = 0;

    assert(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(dir);
    return n;
}

static void put(int at, const char *name, const char *text) {
    _cleanup_close_ int fd = openat(at, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert(fd >= 0 && file_write_all(fd, text, strlen(text)) == 0);
}

static bool holds(const char *path, const char *text) {
    char got[64];

    return file_read_text(path, got, sizeof(got)) >= 0 && strcmp(got, text) == 0;
}

static int write_target(const char *path, PdLayout layout, bool force, const char *text) {
    Target t = {.fd = -1};
    int r = target_open(&t, path, layout, force);

    if (r == 0) {
        if (layout == PD_LAYOUT_DIRECTORY)
            put(t.fd, "data", text);
        else
            r = file_write_all(t.fd, text, strlen(text));
    }
    if (r == 0)
        r = target_commit(&t);
    target_done(&t);
    return r;
}

TEST(a_file_appears_when_it_is_committed) {
    Target t = {.fd = -1};

    enter();
    CHECK_OK(target_open(&t, "out", PD_LAYOUT_FILE, false));
    CHECK(access("out", F_OK) < 0);
    CHECK_OK(file_write_all(t.fd, "new", 3));
    CHECK_OK(target_commit(&t));
    target_done(&t);
    CHECK(holds("out", "new"));
    CHECK_EQ(entries("."), 1U);
    leave();
}

TEST(uncommitted_target_is_removed) {
    for (unsigned i = 0; i < 2; i++) {
        Target t = {.fd = -1};

        enter();
        CHECK_OK(target_open(&t, "out", i ? PD_LAYOUT_DIRECTORY : PD_LAYOUT_FILE, false));
        if (i) {
            put(t.fd, "data", "x");
            put(t.fd, "data.0", "x");
            put(t.fd, "data.63", "x");
        }
        CHECK_EQ(entries("."), 1U);
        target_done(&t);
        CHECK_EQ(entries("."), 0U);
        leave();
    }
}

TEST(without_force_an_existing_file_stays) {
    enter();
    put(AT_FDCWD, "out", "old");
    CHECK_EQ(write_target("out", PD_LAYOUT_FILE, false, "new"), -EEXIST);
    CHECK_EQ(write_target("out", PD_LAYOUT_DIRECTORY, false, "new"), -EEXIST);
    CHECK(holds("out", "old"));
    CHECK_EQ(entries("."), 1U);
    leave();
}

TEST(without_force_a_file_that_appears_meanwhile_stays) {
    Target t = {.fd = -1};

    enter();
    CHECK_OK(target_open(&t, "out", PD_LAYOUT_FILE, false));
    put(AT_FDCWD, "out", "old");
    CHECK_EQ(target_commit(&t), -EEXIST);
    target_done(&t);
    CHECK(holds("out", "old"));
    CHECK_EQ(entries("."), 1U);
    leave();
}

TEST(with_force_files_and_folders_replace_each_other) {
    static const PdLayout layouts[] = {PD_LAYOUT_FILE, PD_LAYOUT_DIRECTORY};

    for (unsigned i = 0; i < 4; i++) {
        PdLayout before = layouts[i / 2], after = layouts[i % 2];

        enter();
        CHECK_OK(write_target("out", before, false, "old"));
        CHECK_OK(write_target("out", after, true, "new"));
        CHECK(holds(after == PD_LAYOUT_FILE ? "out" : "out/data", "new"));
        CHECK_EQ(entries("."), 1U);
        leave();
    }
}

TEST(a_folder_with_other_files_is_never_replaced) {
    enter();
    CHECK_OK(write_target("out", PD_LAYOUT_DIRECTORY, false, "old"));
    put(AT_FDCWD, "out/thesis", "years");
    CHECK_EQ(write_target("out", PD_LAYOUT_FILE, true, "new"), -ENOTEMPTY);
    CHECK_EQ(write_target("out", PD_LAYOUT_DIRECTORY, true, "new"), -ENOTEMPTY);
    CHECK(holds("out/thesis", "years"));
    CHECK_OK(unlink("out/thesis"));
    CHECK_OK(mkdir("out/data.9", 0700));
    CHECK_EQ(write_target("out", PD_LAYOUT_DIRECTORY, true, "new"), -ENOTEMPTY);
    leave();
}

TEST(a_device_or_fifo_is_never_replaced) {
    enter();
    CHECK_OK(mkfifo("out", 0600));
    CHECK_EQ(write_target("out", PD_LAYOUT_FILE, true, "new"), -EINVAL);
    CHECK_OK(symlink("/dev/null", "link"));
    CHECK_EQ(write_target("link", PD_LAYOUT_FILE, true, "new"), -EINVAL);
    CHECK_EQ(entries("."), 2U);
    leave();
}

TEST(a_slash_after_the_name_of_a_folder_changes_nothing) {
    enter();
    CHECK_OK(write_target("out/", PD_LAYOUT_DIRECTORY, false, "new"));
    CHECK(holds("out/data", "new"));
    CHECK_EQ(entries("."), 1U);
    leave();
}

TEST(stdout_accepts_only_streams) {
    Target t = {.fd = -1};

    CHECK_EQ(target_open(&t, "-", PD_LAYOUT_FILE, false), -EINVAL);
    target_done(&t);
    CHECK_EQ(target_open(&t, "-", PD_LAYOUT_DIRECTORY, true), -EINVAL);
    target_done(&t);
}

TEST(missing_folder_is_reported) {
    enter();
    CHECK_EQ(write_target("none/out", PD_LAYOUT_FILE, false, "x"), -ENOENT);
    leave();
}

TEST(a_signal_removes_the_unfinished_file) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

    for (unsigned i = 0; i < 2 * ARRAY_SIZE(signals); i++) {
        pid_t child;
        int status;

        enter();
        child = fork();
        if (child == 0) {
            Target t;

            if (target_open(&t, "out", i % 2 ? PD_LAYOUT_DIRECTORY : PD_LAYOUT_FILE, false) < 0)
                _exit(1);
            if (i % 2)
                put(t.fd, "data.12", "x");
            (void)raise(signals[i / 2]);
            _exit(2);
        }
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFSIGNALED(status));
        CHECK_EQ(WTERMSIG(status), signals[i / 2]);
        CHECK_EQ(entries("."), 0U);
        leave();
    }
}

TEST_MAIN()
