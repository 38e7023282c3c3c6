/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "keeper-stand-in.h"
#include "scan/baseline.h"
#include "scan/scanner.h"
#include "test.h"
#include "util/file.h"

/* Processes that a test made up, and processes that it runs. */

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
    put_stat("42/task/42/stat", "gone", 'Z', 0, 3, 99);
    put("dead\n", "42/task/43/comm");
    put("", "42/task/43/maps");
    put_stat("42/task/43/stat", "dead", 'X', 0, 3, 99);
    put("alive\n", "42/task/44/comm");
    put_stat("42/task/44/stat", "alive", 'S', 0, 3, 99);
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

TEST(maps_of_kernel_threads_are_not_read) {
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    Keeper keeper = {.root = root};
    Baseline b;

    begin();
    put_stat("2/stat", "kworker/0:1-events", 'I', 0x00208040, 1, 5);
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
    keeper.refuses = EPIPE;
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

/* Of a process that runs: what /proc says, read another way. */

typedef struct Child {
    pid_t pid;
    int ready, quit;
} Child;

/* Runs fn in a child until it is told to end; fn returns when all is as it is to be seen. */
static Child spawn(void (*fn)(void)) {
    int ready[2], quit[2];
    Child child;
    char c;

    if (pipe(ready) < 0 || pipe(quit) < 0)
        abort();
    child.pid = fork();
    if (child.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(quit[1]);
        fn();
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        if (read(quit[0], &c, 1) < 0)
            _exit(1);
        _exit(0);
    }
    close(ready[1]);
    close(quit[0]);
    if (read(ready[0], &c, 1) != 1)
        abort();
    child.ready = ready[0];
    child.quit = quit[1];
    return child;
}

static void reap(Child *child) {
    close(child->quit);
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    close(child->ready);
}

/* Whether each executable line of the text is a map, in the same order, and no other is there. */
static bool maps_agree(const Baseline *b) {
    char path[64], line[8192];
    size_t n = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%u/maps", b->pid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        unsigned long start, stop, inode;
        unsigned major, minor;
        char permissions[5];
        int name = 0;
        const PdMmap *m = &b->maps[n];

        line[strcspn(line, "\n")] = '\0';
        if (strstr(line, "\\012")) {
            char *escaped = strstr(line, "\\012");

            *escaped = '\n';
            memmove(escaped + 1, escaped + 4, strlen(escaped + 4) + 1);
        }
        if (sscanf(line, "%lx-%lx %4s %*x %x:%x %lu %n", &start, &stop, permissions, &major, &minor,
                   &inode, &name) != 6 ||
            permissions[2] != 'x' || strcmp(line + name, "[vsyscall]") == 0)
            continue;
        if (n++ >= b->n_maps || m->start != start || m->start + m->length != stop ||
            m->inode != inode || m->major != major || m->minor != minor ||
            !bytes_equal_str(m->filename, line[name] ? line + name : "//anon")) {
            printf("# %s is not told\n", line);
            fclose(f);
            return false;
        }
    }
    if (f)
        fclose(f);
    return n > 0 && n == b->n_maps;
}

/* Sanitizers bring threads of their own. */
static size_t tasks_of(pid_t pid) {
    char path[64];
    size_t n = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        n += e->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

static bool has_thread(const Baseline *b, const char *comm) {
    for (size_t i = 0; i < b->n_threads; i++)
        if (strcmp(b->threads[i].comm, comm) == 0)
            return true;
    return false;
}

static bool has_map(const Baseline *b, const char *name) {
    for (size_t i = 0; i < b->n_maps; i++)
        if (bytes_equal_str(b->maps[i].filename, name))
            return true;
    return false;
}

static void *wait_here(void *name) {
    prctl(PR_SET_NAME, name);
    for (;;)
        pause();
    return NULL;
}

static void start_threads(void) {
    static char names[3][16] = {"alpha", "be) S 1 (ta", "\xff\x1b[2J"};
    pthread_t thread;

    for (size_t i = 0; i < 3; i++)
        if (pthread_create(&thread, NULL, wait_here, names[i]) != 0)
            abort();
    prctl(PR_SET_NAME, "leader");
    /* Each has its name when it sleeps. */
    usleep(50000);
}

static void make_mappings(void) {
    int fd = memfd_create("made\nup", 0);

    if (ftruncate(fd, 8192) < 0)
        abort();
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096) == MAP_FAILED ||
        mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        abort();
}

TEST(threads_of_a_living_process_are_read_with_their_names) {
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    Keeper keeper = {.root = ""};
    Child child = spawn(start_threads);
    Baseline b;

    CHECK_OK(process_reader_new(proc_of(""), &keeper, &reader));
    CHECK_OK(process_reader_read(reader, (uint32_t)child.pid, &b));
    CHECK_EQ(b.ppid, (uint32_t)getpid());
    CHECK(b.n_threads >= 4);
    CHECK_EQ(b.n_threads, tasks_of(child.pid));
    CHECK_STREQ(b.threads[0].comm, "leader");
    CHECK(has_thread(&b, "alpha"));
    CHECK(has_thread(&b, "be) S 1 (ta"));
    CHECK(has_thread(&b, "\xff\x1b[2J"));
    CHECK(maps_agree(&b));
    reap(&child);
}

TEST(mappings_of_a_living_process_are_those_of_proc) {
    for (unsigned copies = 0; copies < 2; copies++) {
        _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
        Keeper keeper = {.root = "", .copies = copies};
        Child child = spawn(make_mappings);
        Baseline b;

        CHECK_OK(process_reader_new(proc_of(""), &keeper, &reader));
        CHECK_OK(process_reader_read(reader, (uint32_t)child.pid, &b));
        CHECK(maps_agree(&b));
        CHECK(has_map(&b, "//anon"));
        CHECK(has_map(&b, "/memfd:made\nup (deleted)"));
        CHECK(has_map(&b, "[vdso]"));
        reap(&child);
    }
}

static int told;

static void *outlive(void *unused) {
    (void)unused;
    prctl(PR_SET_NAME, "survivor");
    /* The leader is a zombie by then. */
    usleep(100000);
    if (write(told, "x", 1) != 1)
        abort();
    for (;;)
        pause();
    return NULL;
}

TEST(a_zombie_leader_of_a_living_process_has_threads_and_maps) {
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    Keeper keeper = {.root = ""};
    int ends[2];
    pid_t pid;
    Baseline b;
    char c;

    CHECK_OK(pipe(ends));
    pid = fork();
    if (pid == 0) {
        pthread_t thread;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        told = ends[1];
        if (pthread_create(&thread, NULL, outlive, NULL) == 0)
            syscall(SYS_exit, 0);
        _exit(1);
    }
    CHECK_EQ(read(ends[0], &c, 1), 1);
    CHECK_OK(process_reader_new(proc_of(""), &keeper, &reader));
    CHECK_OK(process_reader_read(reader, (uint32_t)pid, &b));
    CHECK_EQ(b.n_threads, tasks_of(pid));
    CHECK(has_thread(&b, "survivor"));
    CHECK(b.n_maps > 2);
    CHECK(has_map(&b, "[vdso]"));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_zombie_process_is_gone) {
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    Keeper keeper = {.root = ""};
    pid_t pid = fork();
    siginfo_t info;
    Baseline b;

    if (pid == 0)
        _exit(0);
    CHECK_OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
    CHECK_OK(process_reader_new(proc_of(""), &keeper, &reader));
    CHECK_EQ(process_reader_read(reader, (uint32_t)pid, &b), -ESRCH);
    waitpid(pid, NULL, 0);
    CHECK_EQ(process_reader_read(reader, (uint32_t)pid, &b), -ESRCH);
}

TEST_MAIN()
