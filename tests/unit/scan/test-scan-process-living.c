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
#include "test.h"

/* Processes that run: the result is compared with what /proc says, read another way. */

static int proc_of_host(void) {
    return open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

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

static pthread_barrier_t named;

static void *wait_here(void *name) {
    prctl(PR_SET_NAME, name);
    pthread_barrier_wait(&named);
    for (;;)
        pause();
    return NULL;
}

static void start_threads(void) {
    static char names[3][16] = {"alpha", "be) S 1 (ta", "\xff\x1b[2J"};
    pthread_t thread;

    pthread_barrier_init(&named, NULL, ARRAY_SIZE(names) + 1);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (pthread_create(&thread, NULL, wait_here, names[i]) != 0)
            abort();
    prctl(PR_SET_NAME, "leader");
    pthread_barrier_wait(&named);
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
    _cleanup_close_ int proc = proc_of_host();
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    Keeper keeper = {.root = ""};
    Child child = spawn(start_threads);
    Baseline b;

    CHECK_OK(process_reader_new(proc, &keeper, &reader));
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
    for (unsigned old = 0; old < 2; old++) {
        _cleanup_close_ int proc = proc_of_host();
        _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
        Keeper keeper = {.root = "", .has_no_query = old};
        Child child = spawn(make_mappings);
        Baseline b;

        CHECK_OK(process_reader_new(proc, &keeper, &reader));
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
    _cleanup_close_ int proc = proc_of_host();
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
    CHECK_OK(process_reader_new(proc, &keeper, &reader));
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
    _cleanup_close_ int proc = proc_of_host();
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    Keeper keeper = {.root = ""};
    pid_t pid = fork();
    siginfo_t info;
    Baseline b;

    if (pid == 0)
        _exit(0);
    CHECK_OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
    CHECK_OK(process_reader_new(proc, &keeper, &reader));
    CHECK_EQ(process_reader_read(reader, (uint32_t)pid, &b), -ESRCH);
    waitpid(pid, NULL, 0);
    CHECK_EQ(process_reader_read(reader, (uint32_t)pid, &b), -ESRCH);
}

TEST_MAIN()
