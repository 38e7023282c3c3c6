/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/process.h"

#include <fcntl.h>
#include <signal.h>

#include "keeper-stand-in.h"
#include "scan/baseline.h"
#include "test.h"
#include "util/file.h"

/* Processes that a test made up, as files below a folder of its own. */

static char root[] = "/tmp/test-scan-process-XXXXXX";

static void put(const char *text, const char *format, ...) _printf_(2, 3);

static void put(const char *text, const char *format, ...) {
    char full[512], *slash;
    va_list args;
    int fd, n = snprintf(full, sizeof(full), "%s/proc/", root);

    va_start(args, format);
    vsnprintf(full + n, sizeof(full) - (size_t)n, format, args);
    va_end(args);
    slash = strrchr(full, '/');
    *slash = '\0';
    if (file_make_folders(full, 0700) < 0)
        abort();
    *slash = '/';
    fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        abort();
    close(fd);
}

static void put_stat(const char *path, const char *comm, char state, unsigned flags,
                     unsigned n_threads, unsigned start) {
    char text[512];

    snprintf(text, sizeof(text),
             "1 (%s) %c 7 1 1 0 -1 %u 0 0 0 0 0 0 0 0 20 0 %u 0 %u 0 0 18446744073709551615\n",
             comm, state, flags, n_threads, start);
    put(text, "%s", path);
}

static void begin(void) {
    strcpy(root + sizeof(root) - 7, "XXXXXX");
    if (!mkdtemp(root))
        abort();
}

/* Returns the folder; valid until the next call. */
static int proc_of(const char *of) {
    static int fd = -1;
    char path[256];

    closep(&fd);
    snprintf(path, sizeof(path), "%s/proc", of);
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd;
}

static void end(void) {
    char command[256];

    snprintf(command, sizeof(command), "rm -rf %s", root);
    if (system(command) != 0)
        abort();
}

TEST(a_process_with_threads_is_read_completely) {
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    Keeper keeper = {.root = root};
    Baseline b;

    begin();
    put_stat("42/stat", "lead) R 1 (", 'S', 0, 3, 99);
    put("other\n", "42/task/42/comm");
    put("work\ner\n", "42/task/43/comm");
    put("\x1b[2J\xff\n", "42/task/44/comm");
    put("x\n", "42/task/self/comm");
    put("1000-2000 r-xp 00000000 fe:00 12   /bin/a b\n"
        "2000-3000 rw-p 00000000 00:00 0\n"
        "nonsense\n"
        "3000-4000 rwxp 00000000 00:00 0 \n",
        "42/task/42/maps");
    CHECK_OK(process_reader_new(proc_of(root), &keeper, &reader));
    CHECK_OK(process_reader_read(reader, 42, &b));
    CHECK_EQ(b.pid, 42U);
    CHECK_EQ(b.ppid, 7U);
    CHECK(b.begin_ns > 0 && b.begin_ns <= b.end_ns);
    CHECK(!b.is_kernel_thread);
    CHECK_EQ(b.n_threads, 3U);
    CHECK_EQ(b.threads[0].tid, 42U);
    CHECK_STREQ(b.threads[0].comm, "lead) R 1 (");
    for (size_t i = 1; i < 3; i++)
        CHECK_STREQ(b.threads[i].comm, b.threads[i].tid == 43 ? "work\ner" : "\x1b[2J\xff");
    CHECK_EQ(b.n_maps, 2U);
    CHECK_EQ(b.maps[0].pid, 42U);
    CHECK_EQ(b.maps[0].tid, 42U);
    CHECK(bytes_equal_str(b.maps[0].filename, "/bin/a b"));
    CHECK(bytes_equal_str(b.maps[1].filename, "//anon"));
    end();
}

TEST(data_mappings_are_read_on_request_and_only_of_programs) {
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    Keeper keeper = {.root = root};
    Baseline b;

    begin();
    put_stat("42/stat", "x", 'S', 0, 1, 99);
    put("1000-2000 r--p 00000000 fe:00 12   /bin/a\n"
        "2000-3000 r-xp 00001000 fe:00 12   /bin/a\n"
        "3000-4000 r--p 00002000 fe:00 12   /bin/a\n"
        "4000-5000 rw-p 00003000 fe:00 12   /bin/a\n"
        "5000-6000 rw-p 00000000 00:00 0\n"
        "6000-7000 r--p 00000000 fe:00 13   /var/data\n"
        "7000-8000 r--p 00000000 fe:00 14   /lib/b\n"
        "8000-9000 r-xp 00001000 fe:00 14   /lib/b\n"
        "9000-a000 r--p 00000000 fe:00 15   /var/more\n",
        "42/task/42/maps");
    CHECK_OK(process_reader_new(proc_of(root), &keeper, &reader));
    CHECK_OK(process_reader_read(reader, 42, &b));
    CHECK_EQ(b.n_maps, 2U);
    process_reader_see_data(reader, true);
    CHECK_OK(process_reader_read(reader, 42, &b));
    CHECK_EQ(b.n_maps, 5U);
    for (size_t i = 0; i < b.n_maps; i++)
        CHECK(bytes_equal_str(b.maps[i].filename, i < 3 ? "/bin/a" : "/lib/b"));
    CHECK_EQ(b.maps[3].start, 0x7000U);
    process_reader_see_data(reader, false);
    CHECK_OK(process_reader_read(reader, 42, &b));
    CHECK_EQ(b.n_maps, 2U);
    end();
}

TEST(namespaces_are_read_on_request) {
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    Keeper keeper = {.root = root};
    Baseline b;

    begin();
    put_stat("42/stat", "x", 'S', 0, 1, 99);
    put("", "42/task/42/maps");
    CHECK_OK(process_reader_new(proc_of(root), &keeper, &reader));
    CHECK_OK(process_reader_read(reader, 42, &b));
    CHECK(!b.has_namespaces);
    process_reader_see_namespaces(reader);
    CHECK_OK(process_reader_read(reader, 42, &b));
    CHECK(b.has_namespaces);
    CHECK_EQ(b.namespaces[0].dev, 4U);
    CHECK_EQ(b.namespaces[BASELINE_NAMESPACES - 1].inode, 426U);
    keeper.refuses = EACCES;
    CHECK_OK(process_reader_read(reader, 42, &b));
    CHECK(!b.has_namespaces);
    end();
}

TEST(a_copy_is_independent_of_the_original) {
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    _cleanup_free_ Baseline *copy = NULL;
    Keeper keeper = {.root = root};
    Baseline b;

    begin();
    put_stat("42/stat", "first", 'S', 0, 1, 99);
    put("1000-2000 r-xp 00000000 fe:00 12   /bin/first\n", "42/task/42/maps");
    put_stat("43/stat", "second", 'S', 0, 1, 99);
    put("1000-2000 r-xp 00000000 fe:00 12   /bin/second\n", "43/task/43/maps");
    CHECK_OK(process_reader_new(proc_of(root), &keeper, &reader));
    CHECK_OK(process_reader_read(reader, 42, &b));
    copy = baseline_copy(&b);
    CHECK(copy != NULL);
    CHECK_OK(process_reader_read(reader, 43, &b));
    CHECK_STREQ(b.threads[0].comm, "second");
    reader = process_reader_free(reader);
    CHECK_EQ(copy->n_threads, 1U);
    CHECK_STREQ(copy->threads[0].comm, "first");
    CHECK_EQ(copy->n_maps, 1U);
    CHECK_EQ(copy->maps[0].inode, 12U);
    CHECK(bytes_equal_str(copy->maps[0].filename, "/bin/first"));
    end();
}

TEST(a_leader_that_ended_is_read_through_a_living_thread) {
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    Keeper keeper = {.root = root};
    Baseline b;

    begin();
    put_stat("42/stat", "gone", 'Z', 0, 3, 99);
    put("gone\n", "42/task/42/comm");
    put("", "42/task/42/maps");
    put("dead\n", "42/task/43/comm");
    put("", "42/task/43/maps");
    put_stat("43/stat", "dead", 'X', 0, 3, 99);
    put("alive\n", "42/task/44/comm");
    put_stat("44/stat", "alive", 'S', 0, 3, 99);
    put("1000-2000 r-xp 00000000 fe:00 12   /bin/a\n", "42/task/44/maps");
    CHECK_OK(process_reader_new(proc_of(root), &keeper, &reader));
    CHECK_OK(process_reader_read(reader, 42, &b));
    CHECK_EQ(b.n_threads, 3U);
    CHECK_STREQ(b.threads[0].comm, "gone");
    CHECK_EQ(b.n_maps, 1U);
    end();
}

TEST(a_process_with_only_a_zombie_leader_is_gone) {
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    Keeper keeper = {.root = root};
    Baseline b;

    begin();
    put_stat("42/stat", "gone", 'Z', 0, 1, 99);
    put("gone\n", "42/task/42/comm");
    CHECK_OK(process_reader_new(proc_of(root), &keeper, &reader));
    CHECK_EQ(process_reader_read(reader, 42, &b), -ESRCH);
    CHECK_EQ(process_reader_read(reader, 43, &b), -ESRCH);
    end();
}

TEST(kernel_threads_have_no_maps) {
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    Keeper keeper = {.root = root};
    Baseline b;

    begin();
    put_stat("2/stat", "kworker/0:1-events", 'I', 0x00208040, 1, 5);
    put("0 0 0 0 0 0 0\n", "2/statm");
    CHECK_OK(process_reader_new(proc_of(root), &keeper, &reader));
    CHECK_OK(process_reader_read(reader, 2, &b));
    CHECK(b.is_kernel_thread);
    CHECK_STREQ(b.threads[0].comm, "kworker/0:1");
    CHECK_EQ(b.n_maps, 0U);
    CHECK_EQ(atomic_load(&keeper.n_opened), 0U);
    end();
}

/* n executable lines, each with a name of that many bytes. */
static char *lines_of(size_t n, size_t name_size) {
    char *text = malloc(n * (name_size + 64) + 1), *at = text;

    for (size_t i = 0; i < n; i++) {
        at += sprintf(at, "%zx-%zx r-xp 00000000 fe:00 12   /", (i + 1) << 12, (i + 2) << 12);
        memset(at, 'x', name_size);
        at[name_size] = '\n';
        at += name_size + 1;
    }
    *at = '\0';
    return text;
}

TEST(a_huge_process_is_reported_as_far_as_memory_allows) {
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    _cleanup_free_ char *many = lines_of(PROCESS_MAPS_MAX + 10, 1),
                        *long_ones = lines_of(5000, 4000);
    Keeper keeper = {.root = root};
    Baseline b;

    begin();
    put_stat("42/stat", "giant", 'S', 0, 1, 99);
    put(many, "42/task/42/maps");
    CHECK_OK(process_reader_new(proc_of(root), &keeper, &reader));
    CHECK_OK(process_reader_read(reader, 42, &b));
    CHECK_EQ(b.n_maps, (size_t)PROCESS_MAPS_MAX);
    put(long_ones, "42/task/42/maps");
    CHECK_OK(process_reader_read(reader, 42, &b));
    CHECK(b.n_maps > 1000 && b.n_maps < 1100);
    CHECK_EQ(b.maps[b.n_maps - 1].filename.size, 4001U);
    /* The processes that follow are read with the usual memory. */
    put("1000-2000 r-xp 00000000 fe:00 12   /bin/a\n", "42/task/42/maps");
    CHECK_OK(process_reader_read(reader, 42, &b));
    CHECK_EQ(b.n_maps, 1U);
    CHECK(bytes_equal_str(b.maps[0].filename, "/bin/a"));
    end();
}

static unsigned start_now;

static void become_another(Keeper *keeper, uint32_t pid) {
    char path[32];

    (void)keeper;
    snprintf(path, sizeof(path), "%u/stat", pid);
    put_stat(path, "another", 'S', 0, 1, ++start_now);
}

static void become_another_once(Keeper *keeper, uint32_t pid) {
    become_another(keeper, pid);
    keeper->before_maps = NULL;
}

/* Files of a process that is gone cannot be read, even if they were open before. */
static void vanish(Keeper *keeper, uint32_t pid) {
    char command[256];

    (void)keeper;
    put("", "%u/stat", pid);
    snprintf(command, sizeof(command), "rm -rf %s/proc/%u", root, pid);
    if (system(command) != 0)
        abort();
}

TEST(a_reused_pid_is_read_again) {
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    Keeper keeper = {.root = root, .before_maps = become_another_once};
    Baseline b;

    begin();
    start_now = 99;
    put_stat("42/stat", "one", 'S', 0, 1, 99);
    put("1000-2000 r-xp 00000000 fe:00 12   /bin/a\n", "42/task/42/maps");
    CHECK_OK(process_reader_new(proc_of(root), &keeper, &reader));
    CHECK_OK(process_reader_read(reader, 42, &b));
    CHECK_STREQ(b.threads[0].comm, "another");
    CHECK_EQ(b.n_threads, 1U);
    CHECK_EQ(b.n_maps, 1U);
    keeper.before_maps = become_another;
    CHECK_EQ(process_reader_read(reader, 42, &b), -EAGAIN);
    end();
}

TEST(a_process_that_vanishes_while_it_is_read_is_gone) {
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    Keeper keeper = {.root = root, .before_maps = vanish};
    Baseline b;

    begin();
    put_stat("42/stat", "one", 'S', 0, 1, 99);
    put("1000-2000 r-xp 00000000 fe:00 12   /bin/a\n", "42/task/42/maps");
    CHECK_OK(process_reader_new(proc_of(root), &keeper, &reader));
    CHECK_EQ(process_reader_read(reader, 42, &b), -ESRCH);
    end();
}

TEST(maps_that_may_not_be_read_are_skipped) {
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    Keeper keeper = {.root = root, .refuses = EACCES};
    Baseline b;

    begin();
    put_stat("42/stat", "one", 'S', 0, 1, 99);
    CHECK_OK(process_reader_new(proc_of(root), &keeper, &reader));
    CHECK_OK(process_reader_read(reader, 42, &b));
    CHECK_EQ(b.n_maps, 0U);
    keeper.refuses_all = EPIPE;
    CHECK_EQ(process_reader_read(reader, 42, &b), -EPIPE);
    end();
}

TEST(only_entries_with_plain_numbers_are_listed_as_processes) {
    _cleanup_free_ uint32_t *pids = NULL;
    size_t n;

    begin();
    put("", "1/stat");
    put("", "4194304/stat");
    put("", "self/stat");
    put("", "0/stat");
    put("", "12x/stat");
    CHECK_OK(process_list(proc_of(root), &pids, &n));
    CHECK_EQ(n, 2U);
    CHECK_EQ(pids[0] + pids[1], 4194305U);
    CHECK(process_shows_all(proc_of(root)));
    end();
}

TEST_MAIN()
