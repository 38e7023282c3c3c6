/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scan/late.h"
#include "scan/text/line.h"
#include "scan/text/mapping.h"
#include "scan/text/stat.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * The stat file of a process is opened first and read again last: the kernel answers only while
 * that very process exists, so everything in between, although accessed by pid, belonged to it. If
 * something else happens to the process meanwhile (a thread, an exec, a new mapping), side-band
 * reports it and the caller reads the process again.
 *
 * Most processes have one thread and a handful of executable mappings, and there are thousands of
 * them. The stat line has the comm and the number of threads, so such a process costs two files.
 * The memory of a huge process is freed with the next one.
 *
 * A process can keep its maps from being read, so a helper of the keeper reads them. A process that
 * did not answer in time is noted as late, and only read_late() waits for it again.
 */

enum {
    PF_KTHREAD = 0x00200000, /* include/linux/sched.h */
    STATUS_SIZE = 16 << 10,  /* with a thousand groups of the user */
    STAT_SIZE = 1024,        /* 52 numbers and a comm */
    NAMES_MAX = 4 << 20,     /* bytes of the paths of a process, which the process chooses */
    COMM_SIZE = 16,
    NAMES_KEEP = 1 << 20,
    LINES_MAX = 1 << 20, /* of maps: many more than can exist at a time */
    TASKS_SLACK = 64,    /* threads beyond those in the stat line */
    ATTEMPTS = 3,
    NO_THREAD = 0,
};

struct ProcessReader {
    int proc;
    Keeper *keeper;
    Buffer names; /* comms and paths, each ended by NUL; the buffer moves, so they are referenced
                   * by offset */
    BaselineThread *threads;
    size_t n_threads;
    PdMmap *maps;
    size_t n_maps;
    atomic_bool sees_namespaces, sees_data;
    bool with_data;                    /* read data mappings of the current process */
    struct {                           /* the latest mappings, all of one file */
        size_t n_before, names_before; /* how many there were before them */
        bool is_executed;
    } file;
    LateProcesses late;
    bool waits_again; /* also for a process that is late */
    LineReader lines;
};

int process_reader_new(int proc, Keeper *keeper, ProcessReader **ret) {
    ProcessReader *reader = calloc(1, sizeof(*reader));

    if (!reader)
        return -ENOMEM;
    reader->proc = proc;
    reader->keeper = keeper;
    *ret = reader;
    return 0;
}

ProcessReader *process_reader_free(ProcessReader *reader) {
    if (!reader)
        return NULL;
    buffer_done(&reader->names);
    free(reader->threads);
    free(reader->maps);
    free(reader);
    return NULL;
}

/* Frees large buffers; the arrays grow again from a small size. */
static void process_forget(ProcessReader *p) {
    if (p->names.allocated > NAMES_KEEP)
        buffer_done(&p->names);
    buffer_clear(&p->names);
    p->n_threads = p->n_maps = 0;
    p->file = (typeof(p->file)){.is_executed = true};
}

static int process_open_stat(const ProcessReader *p, uint32_t pid) {
    char path[32];
    int fd;

    snprintf(path, sizeof(path), "%" PRIu32 "/stat", pid);
    fd = openat(p->proc, path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Returns what one read() of a file below a folder gives: enough for a comm. */
static int process_read_once(int folder, const char *path, char *buf, size_t size, Bytes *ret) {
    _cleanup_close_ int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -errno;
    n = read(fd, buf, size);
    if (n < 0)
        return -errno;
    *ret = (Bytes){.data = (const uint8_t *)buf, .size = (size_t)n};
    return 0;
}

static int process_read_stat(int fd, ProcessStat *ret) {
    char text[STAT_SIZE];
    ssize_t n = pread(fd, text, sizeof(text), 0);

    if (n < 0)
        return -errno;
    return n == 0 ? -ESRCH
                  : process_stat_parse((Bytes){.data = (uint8_t *)text, .size = (size_t)n}, ret);
}

static DIR *process_open_folder(int parent, const char *path) {
    int fd = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir && fd >= 0)
        (void)close(fd);
    return dir;
}

static DIR *process_open_tasks(const ProcessReader *p, uint32_t pid) {
    char path[32];

    snprintf(path, sizeof(path), "%" PRIu32 "/task", pid);
    return process_open_folder(p->proc, path);
}

/* The next thread, or NO_THREAD; also after `*left` of them, since threads may start as fast as
 * they are listed, but those have side-band. */
static uint32_t process_next_task(DIR *tasks, size_t *left) {
    uint32_t tid;

    for (struct dirent *e; *left > 0 && (e = readdir(tasks)); --*left)
        if (process_id_parse(e->d_name, &tid))
            return tid;
    return NO_THREAD;
}

static size_t process_tasks_to_list(const ProcessStat *stat) {
    return MIN(stat->n_threads, (uint64_t)PROCESS_THREADS_MAX) + TASKS_SLACK;
}

/* Stores an offset in place of a pointer until the buffer no longer moves. */
static void *process_keep_name(Buffer *names, Bytes text) {
    size_t at = names->size;

    buffer_append(names, text.data, text.size);
    buffer_zero(names, 1);
    return (void *)at;
}

static int process_add_thread(ProcessReader *p, uint32_t tid, const char *comm) {
    BaselineThread *thread = array_grow(&p->threads, &p->n_threads);

    if (!thread)
        return -ENOMEM;
    thread->tid = tid;
    thread->comm =
        process_keep_name(&p->names, (Bytes){.data = (const uint8_t *)comm, .size = strlen(comm)});
    return buffer_error(&p->names);
}

static int process_add_other_threads(ProcessReader *p, uint32_t pid, const ProcessStat *stat) {
    _cleanup_closedir_ DIR *tasks = process_open_tasks(p, pid);
    size_t left = process_tasks_to_list(stat);
    int r = 0;

    if (!tasks)
        return -errno;
    for (uint32_t tid; r == 0 && (tid = process_next_task(tasks, &left)) != NO_THREAD; left--) {
        char path[32], text[64], comm[16];
        Bytes bytes;

        if (tid == pid)
            continue;
        snprintf(path, sizeof(path), "%u/comm", tid);
        if (process_read_once(dirfd(tasks), path, text, sizeof(text), &bytes) < 0)
            continue;
        if (bytes.size > 0 && bytes.data[bytes.size - 1] == '\n')
            bytes.size--;
        process_comm_copy(comm, bytes);
        r = process_add_thread(p, tid, comm);
    }
    return r;
}

static bool process_is_of_last_file(const ProcessReader *p, const PdMmap *map) {
    const PdMmap *last = p->n_maps > p->file.n_before ? &p->maps[p->n_maps - 1] : NULL;

    return last && map->inode != 0 && map->inode == last->inode && map->major == last->major &&
           map->minor == last->minor;
}

/* The mappings of a program are adjacent; a file without executable mapping is not a program, so
 * its data mappings are dropped. */
static void process_begin_file(ProcessReader *p) {
    if (!p->file.is_executed) {
        p->n_maps = p->file.n_before;
        p->names.size = p->file.names_before;
    }
    p->file = (typeof(p->file)){.n_before = p->n_maps, .names_before = p->names.size};
}

/* 1: there is no space for more. */
static int process_add_map(ProcessReader *p, const PdMmap *map, uint32_t pid) {
    PdMmap *kept;

    if (!process_is_of_last_file(p, map))
        process_begin_file(p);
    p->file.is_executed |= (map->prot & PROT_EXEC) != 0;
    if (p->n_maps >= PROCESS_MAPS_MAX || p->names.size >= NAMES_MAX + p->n_threads * COMM_SIZE)
        return 1;
    kept = array_grow(&p->maps, &p->n_maps);
    if (!kept)
        return -ENOMEM;
    *kept = *map;
    kept->pid = kept->tid = pid;
    kept->filename.data = process_keep_name(&p->names, map->filename);
    return buffer_error(&p->names);
}

static int process_read_text(ProcessReader *p, int fd, uint32_t pid) {
    size_t size, n = 0;
    PdMmap map;
    char *line;
    int r = 0;

    line_reader_init(&p->lines, fd);
    while (r == 0 && n++ < LINES_MAX) {
        r = line_reader_next(&p->lines, &line, &size);
        if (r <= 0)
            return r;
        r = mapping_parse(line, size, p->with_data, &map) ? process_add_map(p, &map, pid) : 0;
    }
    return r;
}

static int process_add_maps(ProcessReader *p, int fd, uint32_t pid) {
    int r = process_read_text(p, fd, pid);

    process_begin_file(p);
    return MIN(r, 0);
}

/* The user who runs a process. The owner of /proc/PID will not do: it is root for a process that
 * made itself not dumpable. */
static int process_user(const ProcessReader *p, uint32_t pid, uid_t *ret) {
    char path[32], text[STATUS_SIZE];
    Bytes bytes;
    int r;

    snprintf(path, sizeof(path), "%" PRIu32 "/status", pid);
    r = process_read_once(p->proc, path, text, sizeof(text) - 1, &bytes);
    if (r < 0)
        return r;
    text[bytes.size] = '\0';
    return process_status_user(text, ret);
}

/* How long to wait for the maps of a process; 0: it is left for later. */
static unsigned process_patience_ms(ProcessReader *p, uint32_t pid, uint64_t now_ns) {
    uid_t uid;

    if (p->waits_again)
        return LATE_PATIENCE_MS;
    if (late_has(&p->late, pid))
        return 0;
    return p->late.n_users > 0 && process_user(p, pid, &uid) == 0
               ? late_patience_ms(&p->late, uid, now_ns)
               : LATE_PATIENCE_MS;
}

static void process_note_late(ProcessReader *p, uint32_t pid, uint64_t since_ns) {
    static LogRate rate = {.interval_ns = 600 * NS_PER_SECOND, .burst = 1};
    uint64_t now_ns = clock_monotonic_ns();
    uid_t uid;

    log_limited(&rate, LOG_LEVEL_NOTICE, 0,
                "The memory of process %" PRIu32 " is locked, perhaps while it waits for a file "
                "system, so its code has no names until its maps can be read",
                pid);
    if (process_user(p, pid, &uid) == 0)
        late_charge(&p->late, uid, now_ns - since_ns, now_ns);
}

int process_reader_read_maps(ProcessReader *p, uint32_t pid, uint32_t tid, KeeperMaps what,
                             uint64_t address, int *ret_fd) {
    uint64_t begin_ns = clock_monotonic_ns();
    unsigned patience_ms = process_patience_ms(p, pid, begin_ns);
    int r = -ETIMEDOUT;

    if (patience_ms > 0) {
        keeper_set_patience(p->keeper, patience_ms);
        r = keeper_read_maps(p->keeper, pid, tid, what, address, ret_fd);
        if (r == -ETIMEDOUT)
            process_note_late(p, pid, begin_ns);
    }
    if (r == -ETIMEDOUT)
        late_add(&p->late, pid);
    /* The helper may also have been killed. */
    return r == -EIO ? -EAGAIN : r;
}

static bool process_is_living(int tasks, uint32_t tid) {
    char path[32], text[STAT_SIZE];
    ProcessStat stat;
    Bytes bytes;

    snprintf(path, sizeof(path), "%u/stat", tid);
    return process_read_once(tasks, path, text, sizeof(text), &bytes) == 0 &&
           process_stat_parse(bytes, &stat) == 0 && stat.state != 'Z' && stat.state != 'X';
}

/* A thread that still has the address space, in place of a leader that has ended; NO_THREAD when
 * all have ended. */
static uint32_t process_living_thread(const ProcessReader *p, uint32_t pid,
                                      const ProcessStat *stat) {
    _cleanup_closedir_ DIR *tasks = NULL;
    size_t left = process_tasks_to_list(stat);
    uint32_t tid;

    if (stat->state != 'Z' && stat->state != 'X')
        return pid;
    tasks = stat->n_threads > 1 ? process_open_tasks(p, pid) : NULL;
    if (!tasks)
        return NO_THREAD;
    for (; (tid = process_next_task(tasks, &left)) != NO_THREAD; left--)
        if (tid != pid && process_is_living(dirfd(tasks), tid))
            break;
    return tid;
}

static void process_settle_names(ProcessReader *p) {
    const char *names = (const char *)p->names.data;

    for (size_t i = 0; i < p->n_threads; i++)
        p->threads[i].comm = names + (uintptr_t)p->threads[i].comm;
    for (size_t i = 0; i < p->n_maps; i++)
        p->maps[i].filename.data = p->names.data + (uintptr_t)p->maps[i].filename.data;
}

static int process_read_parts(ProcessReader *p, uint32_t pid, const ProcessStat *stat) {
    uint32_t living = process_living_thread(p, pid, stat);
    _cleanup_close_ int maps = -1;
    int r;

    /* Such a process has no thread left, and its EXIT may have been recorded long ago. */
    if (living == NO_THREAD)
        return -ESRCH;
    r = process_add_thread(p, pid, stat->comm);
    if (r == 0 && stat->n_threads > 1)
        r = process_add_other_threads(p, pid, stat);
    if (r < 0 || stat->flags & PF_KTHREAD)
        return r;
    r = process_reader_read_maps(p, pid, living, p->with_data ? KEEPER_MAPS_ALL : KEEPER_MAPS_CODE,
                                 0, &maps);
    if (r == 0)
        return process_add_maps(p, maps, pid);
    /* A process that is about to end has no maps, and we may not be allowed to read those of
     * others. */
    return r == -ESRCH || r == -ENOENT || r == -EACCES || r == -EPERM ? 0 : r;
}

void process_reader_see_namespaces(ProcessReader *reader) {
    atomic_store(&reader->sees_namespaces, true);
}

void process_reader_see_data(ProcessReader *reader, bool see) {
    atomic_store(&reader->sees_data, see);
}

/* Namespaces that we may not read are left out. */
static void process_read_namespaces(ProcessReader *p, Baseline *baseline) {
    KeeperNamespace found[KEEPER_NAMESPACES];

    static_assert(sizeof(found) == sizeof(baseline->namespaces), "as many, and alike");
    if (!atomic_load(&p->sees_namespaces) ||
        keeper_read_namespaces(p->keeper, baseline->pid, found) < 0)
        return;
    memcpy(baseline->namespaces, found, sizeof(found));
    baseline->has_namespaces = true;
}

/* 0; -EAGAIN: the pid was reused in between. */
static int process_read_whole(ProcessReader *p, uint32_t pid, Baseline *ret) {
    _cleanup_close_ int fd = -1;
    Baseline baseline = {.pid = pid, .begin_ns = clock_monotonic_ns()};
    ProcessStat before, after;
    int r;

    process_forget(p);
    p->with_data = atomic_load(&p->sees_data);
    fd = process_open_stat(p, pid);
    r = fd < 0 ? fd : process_read_stat(fd, &before);
    if (r == 0)
        r = process_read_parts(p, pid, &before);
    if (r == 0)
        process_read_namespaces(p, &baseline);
    if (r == 0)
        r = process_read_stat(fd, &after);
    if (r < 0)
        return r;
    if (before.start_ticks != after.start_ticks)
        return -EAGAIN;
    process_settle_names(p);
    baseline.ppid = before.ppid;
    baseline.end_ns = clock_monotonic_ns();
    baseline.threads = p->threads;
    baseline.n_threads = p->n_threads;
    baseline.maps = p->maps;
    baseline.n_maps = p->n_maps;
    baseline.is_kernel_thread = before.flags & PF_KTHREAD;
    *ret = baseline;
    return 0;
}

int process_reader_read(ProcessReader *reader, uint32_t pid, Baseline *ret) {
    int r = -EAGAIN;

    for (unsigned i = 0; r == -EAGAIN && i < ATTEMPTS; i++)
        r = process_read_whole(reader, pid, ret);
    return r == -ENOENT ? -ESRCH : r;
}

bool process_reader_has_late(const ProcessReader *reader) {
    return reader->late.n > 0;
}

bool process_reader_is_late(const ProcessReader *reader, uint32_t pid) {
    return late_has(&reader->late, pid);
}

int process_reader_read_late(ProcessReader *reader, uint32_t *ret_pid, Baseline *ret) {
    int r;

    if (!late_take(&reader->late, ret_pid))
        return -ENODATA;
    reader->waits_again = true;
    r = process_reader_read(reader, *ret_pid, ret);
    reader->waits_again = false;
    return r;
}

int process_reader_thread(ProcessReader *reader, uint32_t pid, uint32_t *ret_tid) {
    _cleanup_close_ int fd = process_open_stat(reader, pid);
    ProcessStat stat;
    int r = fd < 0 ? fd : process_read_stat(fd, &stat);

    if (r < 0)
        return r;
    *ret_tid = process_living_thread(reader, pid, &stat);
    return *ret_tid == NO_THREAD ? -ESRCH : 0;
}

int process_list(int proc, uint32_t **ret_pids, size_t *ret_n) {
    _cleanup_closedir_ DIR *dir = process_open_folder(proc, ".");
    _cleanup_free_ uint32_t *pids = NULL;
    size_t n = 0;
    uint32_t pid;

    if (!dir)
        return -errno;
    for (struct dirent *e; n < PROCESSES_MAX && (e = readdir(dir));) {
        uint32_t *slot = process_id_parse(e->d_name, &pid) ? array_grow(&pids, &n) : NULL;

        if (slot)
            *slot = pid;
    }
    *ret_pids = TAKE_PTR(pids);
    *ret_n = n;
    return 0;
}

void process_list_of(int proc, uid_t uid, uint32_t *pids, size_t *n) {
    size_t kept = 0;

    for (size_t i = 0; i < *n; i++) {
        struct stat status;
        char name[16];

        snprintf(name, sizeof(name), "%" PRIu32, pids[i]);
        if (fstatat(proc, name, &status, 0) == 0 && status.st_uid == uid)
            pids[kept++] = pids[i];
    }
    *n = kept;
}

int process_reader_start(ProcessReader *reader, uint32_t pid, uint64_t *ret_ns) {
    _cleanup_close_ int fd = process_open_stat(reader, pid);
    long per_second = sysconf(_SC_CLK_TCK);
    ProcessStat stat;
    int r = fd < 0 ? fd : process_read_stat(fd, &stat);

    if (r < 0)
        return r;
    *ret_ns = stat.start_ticks * (NS_PER_SECOND / (uint64_t)MAX(per_second, 1L));
    return 0;
}

int process_inner_pid(int proc, uint32_t pid, uint32_t *ret) {
    char path[32], text[STATUS_SIZE];
    _cleanup_close_ int fd = -1;
    ssize_t n;

    snprintf(path, sizeof(path), "%" PRIu32 "/status", pid);
    fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    n = read(fd, text, sizeof(text) - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    return process_status_inner_pid(text, ret);
}

bool process_shows_all(int proc) {
    _cleanup_close_ int fd = openat(proc, "1/stat", O_RDONLY | O_CLOEXEC);

    return fd >= 0;
}
