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

#include "scan/process-text.h"
#include "scan/text/line.h"
#include "scan/text/mapping.h"
#include "util/array.h"
#include "util/clock.h"

/*
 * The keeper reads the stat file of a process together with its maps, and tells whether both are of
 * one process. Its folder in /proc is opened before and used for the rest: a folder never leads to
 * another process, so all of it, although some is asked for by pid, belongs to that one. If
 * something else happens to the process meanwhile (a thread, an exec, a new mapping), side-band
 * reports it and the caller reads the process again.
 *
 * Most processes have one thread and a handful of executable mappings, and there are thousands of
 * them. The stat line has the comm and the number of threads, so one request is enough for such a
 * process, and a thread of the kernel needs none. The memory of a huge process is freed with the
 * next one.
 */

enum {
    PF_KTHREAD = 0x00200000, /* include/linux/sched.h */
    NAMES_MAX = 4 << 20,     /* bytes of the paths of a process, which the process chooses */
    COMM_SIZE = 16,
    NAMES_KEEP = 1 << 20,
    LINES_MAX = 1 << 20, /* of maps: many more than can exist at a time */
    TASKS_SLACK = 64,    /* threads beyond those in the stat line */
    ATTEMPTS = 3,
    NO_THREAD = 0,
};

struct ProcessReader {
    ProcessTexts texts;
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
    LineReader lines;
};

int process_reader_new(int proc, Keeper *keeper, ProcessReader **ret) {
    ProcessReader *reader = calloc(1, sizeof(*reader));

    if (!reader)
        return -ENOMEM;
    reader->texts.proc = proc;
    reader->texts.keeper = keeper;
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
    return process_open_folder(p->texts.proc, path);
}

/* Returns a descriptor of the folder of a process. */
static int process_open(const ProcessReader *p, uint32_t pid) {
    char path[16];
    int fd;

    snprintf(path, sizeof(path), "%" PRIu32, pid);
    fd = openat(p->texts.proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static bool process_exists(int folder) {
    return faccessat(folder, "stat", F_OK, 0) == 0;
}

/* Reads the stat file of a thread of the kernel. It has no memory, and what has none answers at
 * once. False: it is a process. */
static bool process_read_kernel_thread(int folder, ProcessStat *ret) {
    char text[KEEPER_STAT_BYTES];
    Bytes bytes;

    return process_read_once(folder, "statm", text, sizeof(text), &bytes) == 0 && bytes.size >= 2 &&
           memcmp(text, "0 ", 2) == 0 &&
           process_read_once(folder, "stat", text, sizeof(text), &bytes) == 0 &&
           process_stat_parse(bytes, ret) == 0 && ret->flags & PF_KTHREAD;
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

static int process_add_other_threads(ProcessReader *p, int folder, uint32_t pid,
                                     const ProcessStat *stat) {
    _cleanup_closedir_ DIR *tasks = process_open_folder(folder, "task");
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

static bool process_has_ended(const ProcessStat *stat) {
    return stat->state == 'Z' || stat->state == 'X';
}

static bool process_is_living(ProcessReader *p, uint32_t pid, uint32_t tid) {
    ProcessStat stat;

    return process_text_stat(&p->texts, pid, tid, &stat) == 0 && !process_has_ended(&stat);
}

/* A thread that still has the address space, in place of a leader that has ended; NO_THREAD when
 * all have ended. */
static uint32_t process_living_thread(ProcessReader *p, uint32_t pid, const ProcessStat *stat) {
    _cleanup_closedir_ DIR *tasks = NULL;
    size_t left = process_tasks_to_list(stat);
    uint32_t tid;

    if (!process_has_ended(stat))
        return pid;
    tasks = stat->n_threads > 1 ? process_open_tasks(p, pid) : NULL;
    if (!tasks)
        return NO_THREAD;
    for (; (tid = process_next_task(tasks, &left)) != NO_THREAD; left--)
        if (tid != pid && process_is_living(p, pid, tid))
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

/* Reads the texts through a thread that still has the memory. -ESRCH: the process has no such
 * thread, and its EXIT may have been recorded long ago. */
static int process_read_texts(ProcessReader *p, uint32_t pid, KeeperMaps maps, uint64_t address,
                              ProcessText *ret) {
    int r = process_text_read(&p->texts, pid, pid, maps, address, ret);
    uint32_t living;

    if (r < 0 || !process_has_ended(&ret->stat))
        return r;
    closep(&ret->fd);
    living = process_living_thread(p, pid, &ret->stat);
    return living == NO_THREAD ? -ESRCH
                               : process_text_read(&p->texts, pid, living, maps, address, ret);
}

static int process_read_parts(ProcessReader *p, int folder, uint32_t pid, const ProcessText *text) {
    const ProcessStat *stat = &text->stat;
    int r = process_add_thread(p, pid, stat->comm), error = text->maps_error;

    if (r == 0 && stat->n_threads > 1)
        r = process_add_other_threads(p, folder, pid, stat);
    if (r < 0 || stat->flags & PF_KTHREAD)
        return r;
    if (error == 0)
        return process_add_maps(p, text->fd, pid);
    /* A process that is about to end has no maps, and we may not be allowed to read those of
     * others. */
    return error == -ESRCH || error == -ENOENT || error == -EACCES || error == -EPERM ? 0 : error;
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
        keeper_read_namespaces(p->texts.keeper, baseline->pid, found) < 0)
        return;
    memcpy(baseline->namespaces, found, sizeof(found));
    baseline->has_namespaces = true;
}

static int process_read_whole(ProcessReader *p, uint32_t pid, Baseline *ret) {
    Baseline baseline = {.pid = pid, .begin_ns = clock_monotonic_ns()};
    KeeperMaps maps = atomic_load(&p->sees_data) ? KEEPER_MAPS_ALL : KEEPER_MAPS_CODE;
    _cleanup_close_ int folder = process_open(p, pid), fd = -1;
    ProcessText text = {.fd = -1};
    int r = MIN(folder, 0);

    process_forget(p);
    p->with_data = maps == KEEPER_MAPS_ALL;
    if (r == 0 && !process_read_kernel_thread(folder, &text.stat))
        r = process_read_texts(p, pid, maps, 0, &text);
    if (r < 0)
        return r;
    fd = text.fd;
    r = process_read_parts(p, folder, pid, &text);
    if (r == 0)
        process_read_namespaces(p, &baseline);
    if (r == 0 && !process_exists(folder))
        r = -ESRCH;
    if (r < 0)
        return r;
    process_settle_names(p);
    baseline.ppid = text.stat.ppid;
    baseline.end_ns = clock_monotonic_ns();
    baseline.threads = p->threads;
    baseline.n_threads = p->n_threads;
    baseline.maps = p->maps;
    baseline.n_maps = p->n_maps;
    baseline.is_kernel_thread = text.stat.flags & PF_KTHREAD;
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
    return reader->texts.late.n > 0;
}

uint64_t process_reader_waited_ns(const ProcessReader *reader) {
    return reader->texts.late.waited_ns;
}

bool process_reader_is_late(const ProcessReader *reader, uint32_t pid) {
    return late_has(&reader->texts.late, pid);
}

int process_reader_read_late(ProcessReader *reader, uint32_t *ret_pid, Baseline *ret) {
    int r;

    if (!late_take(&reader->texts.late, ret_pid))
        return -ENODATA;
    reader->texts.waits_again = true;
    r = process_reader_read(reader, *ret_pid, ret);
    reader->texts.waits_again = false;
    /* The helper may have been killed, or could not be started. */
    if (r == -EAGAIN || r == -EBUSY)
        late_add(&reader->texts.late, *ret_pid);
    return r;
}

int process_reader_read_maps(ProcessReader *reader, uint32_t pid, KeeperMaps maps, uint64_t address,
                             int *ret_fd) {
    ProcessText text;
    int r = process_read_texts(reader, pid, maps, address, &text);

    if (r == 0 && text.maps_error < 0) {
        closep(&text.fd);
        r = text.maps_error;
    }
    if (r == 0)
        *ret_fd = text.fd;
    return r;
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
    long per_second = sysconf(_SC_CLK_TCK);
    ProcessStat stat;
    int r = process_text_stat(&reader->texts, pid, pid, &stat);

    if (r < 0)
        return r;
    *ret_ns = stat.start_ticks * (NS_PER_SECOND / (uint64_t)MAX(per_second, 1L));
    return 0;
}

bool process_shows_all(int proc) {
    _cleanup_close_ int fd = openat(proc, "1/stat", O_RDONLY | O_CLOEXEC);

    return fd >= 0;
}
