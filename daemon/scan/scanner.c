/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/scanner.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "scan/baseline.h"
#include "scan/cgroup-scan.h"
#include "scan/elf-reader.h"
#include "scan/kernel.h"
#include "scan/queue.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/thread.h"

/*
 * A reading thread, and the loop's thread that sends requests and gets results. Requests wait in a
 * ScanQueue until the thread takes them, the most urgent first; results wait there until the loop
 * takes them, in slices, so that a thousand processes do not keep it from its rings. The thread
 * waits when there are too many results; a caller gets -ENOBUFS when there are too many requests. A
 * pass over all processes reads one at a time, only while there is nothing more urgent.
 *
 * The readers belong to the reading thread, and so need no lock.
 */

enum {
    SLICE = 32,      /* results that are delivered before other sources have their turn */
    IMAGE_TRIES = 3, /* for an image that was requested while the helper was not available */
};

#define CPU_NOTED_NS (NS_PER_SECOND / 10)
#define STUCK_NS     (30 * NS_PER_SECOND)

/* The CPU time that images may take: a burst, and a share of one CPU over time. */
#define IMAGES_BURST_NS NS_PER_SECOND
#define IMAGES_SHARE    20 /* one part in this many */

struct Scanner {
    Keeper *keeper;
    ScannerSinks sinks;
    LoopSource *readable;
    ScanQueue *queue;
    bool has_thread;
    pthread_t thread;
    atomic_bool one_user, without_kernel;

    int proc;
    ProcessReader *processes;
    KernelReader *kernel;
    ElfReader *elf;
    TableCache *tables; /* the loop's thread owns it; this one only calls table_cache_has() */
    uint32_t *pids;     /* of the current pass */
    size_t n_pids, next_pid;
    uint64_t pass_begin_ns;
    bool in_pass;
    uint64_t debt_ns, debt_at_ns; /* CPU time of images minus their share since */
    atomic_uint_fast64_t scan_cpu_ns, keeper_cpu_ns;
    uint64_t cpu_noted_ns;
    atomic_uint_fast64_t busy_since_ns; /* 0: it waits for work */
    atomic_bool lacks_elf;
    bool is_partial; /* some processes could not be read or seen */
    bool has_warned;
};

/* Takes over the data, also on failure. */
static int scanner_put(Scanner *s, const ScanResult *filled) {
    ScanResult *result = malloc(sizeof(*result));

    if (!result) {
        free(filled->data);
        return log_error(-ENOMEM, "Failed to hand on what was read from /proc: %m");
    }
    *result = *filled;
    result->size = sizeof(*result) + result->data_size;
    return scan_queue_put(s->queue, result);
}

static int scanner_read_kernel(Scanner *s) {
    static LogRate rate = {.interval_ns = 600 * NS_PER_SECOND, .burst = 1};
    _cleanup_(buffer_done) Buffer records = {};
    int r = kernel_reader_read(s->kernel, &records);

    if (r < 0 && !atomic_load(&s->without_kernel))
        log_limited(&rate, LOG_LEVEL_WARNING, r,
                    "Cannot read the addresses of the kernel's code, so kernel samples have no "
                    "symbols; that takes kernel.kptr_restrict below 2: %m");
    /* An empty set is a result too. */
    return scanner_put(s, &(ScanResult){.kind = SCAN_IS_KERNEL,
                                        .data = TAKE_PTR(records.data),
                                        .data_size = records.size});
}

static int scanner_put_cgroup(void *userdata, uint64_t id, const char *path) {
    char *copy = strdup(path);

    if (!copy)
        return -ENOMEM;
    return scanner_put(userdata, &(ScanResult){.kind = SCAN_IS_CGROUP,
                                               .number = id,
                                               .data = copy,
                                               .data_size = strlen(path) + 1});
}

static int scanner_read_cgroups(Scanner *s) {
    uint64_t begin_ns = clock_monotonic_ns();
    int r = cgroup_walk("", scanner_put_cgroup, s);

    if (r < 0 && r != -ENOENT && r != -ECANCELED)
        log_warning(r, "Cannot walk the cgroups, so samples may have the number of a cgroup "
                       "instead of its path: %m");
    if (r == -ECANCELED)
        return r;
    return scanner_put(s, &(ScanResult){.kind = SCAN_IS_CGROUPS_DONE, .number = begin_ns});
}

static int scanner_read_process(Scanner *s, uint32_t pid) {
    Baseline baseline, *copy;
    int r = process_reader_read(s->processes, pid, &baseline);

    if (r < 0) {
        if (r != -ESRCH) {
            (void)log_at(LOG_LEVEL_DEBUG, r, "Cannot read process %" PRIu32 ", ignoring: %m", pid);
            s->is_partial = true;
        }
        return 0;
    }
    copy = baseline_copy(&baseline);
    if (!copy)
        return log_error(-ENOMEM, "Failed to keep process %" PRIu32 ": %m", pid);
    return scanner_put(
        s, &(ScanResult){.kind = SCAN_IS_PROCESS, .data = copy, .data_size = baseline_size(copy)});
}

/* Any user can map any number of files, each as expensive as we allow, so files that exceeded their
 * share delay later files; other work is not delayed. */
static void scanner_charge_images(Scanner *s, uint64_t used_ns) {
    uint64_t now_ns = clock_monotonic_ns(), earned_ns = (now_ns - s->debt_at_ns) / IMAGES_SHARE;

    s->debt_ns = used_ns + (s->debt_ns > earned_ns ? s->debt_ns - earned_ns : 0);
    s->debt_at_ns = now_ns;
    if (s->debt_ns > IMAGES_BURST_NS)
        scan_queue_rest(s->queue, now_ns + (s->debt_ns - IMAGES_BURST_NS) * IMAGES_SHARE);
}

static uint64_t scanner_images_cpu_ns(const Scanner *s) {
    return clock_ns(CLOCK_THREAD_CPUTIME_ID) + elf_reader_cpu_ns(s->elf);
}

/* Whether a file that was just read with result r is put back into the queue. */
static bool scanner_asks_again(Scanner *s, ScanImage *image, int r) {
    uint64_t ready_ns;

    atomic_store(&s->lacks_elf, elf_reader_lacks_helper(s->elf));
    if (r != -EAGAIN || ++image->tries >= IMAGE_TRIES)
        return false;
    ready_ns = elf_reader_ready_ns(s->elf);
    if (ready_ns > clock_monotonic_ns())
        scan_queue_rest(s->queue, ready_ns);
    return scan_queue_ask_image(s->queue, image) == 0;
}

static int scanner_read_image(Scanner *s, ScanImage *image) {
    ScanResult result = {.kind = SCAN_IS_BUILD_ID, .number = image->image};
    uint64_t before_ns = scanner_images_cpu_ns(s);
    int r = elf_reader_build_id(s->elf, &image->mapped, &result.build_id);

    if (r < 0)
        result.build_id.size = 0;
    scanner_charge_images(s, scanner_images_cpu_ns(s) - before_ns);
    if (scanner_asks_again(s, image, r))
        return 0;
    free(image);
    return scanner_put(s, &result);
}

static int scanner_read_table(Scanner *s, ScanImage *image) {
    uint64_t before_ns = scanner_images_cpu_ns(s);
    TableAnswer answer, *copy;
    int r = elf_reader_table(s->elf, &image->mapped, s->tables, &answer);
    size_t table_bytes = answer.table ? answer.table->image.size : 0;

    scanner_charge_images(s, scanner_images_cpu_ns(s) - before_ns);
    if (scanner_asks_again(s, image, r))
        return 0;
    free(image);
    copy = malloc(sizeof(*copy));
    if (!copy) {
        mapped_table_free(answer.table);
        return log_error(-ENOMEM, "Failed to keep an unwind table: %m");
    }
    *copy = answer;
    return scanner_put(s, &(ScanResult){.kind = SCAN_IS_TABLE,
                                        .data = copy,
                                        .data_size = sizeof(*copy) + table_bytes});
}

static int scanner_list_processes(const Scanner *s, uint32_t **ret_pids, size_t *ret_n) {
    int r = process_list(s->proc, ret_pids, ret_n);

    if (r == 0 && atomic_load(&s->one_user))
        process_list_of(s->proc, geteuid(), *ret_pids, ret_n);
    return r;
}

/* One allocation: first the start times, then the pids. */
static int scanner_list_now(Scanner *s) {
    uint64_t begin_ns = clock_monotonic_ns();
    _cleanup_free_ uint32_t *pids = NULL;
    _cleanup_free_ uint64_t *starts = NULL;
    size_t n = 0, kept = 0, size;
    int r = scanner_list_processes(s, &pids, &n);

    size = n * (sizeof(*starts) + sizeof(*pids));
    starts = r < 0 ? NULL : malloc(MAX(size, (size_t)1));
    if (!starts)
        return log_error(r < 0 ? r : -ENOMEM, "Failed to list the processes in /proc: %m");
    for (size_t i = 0; i < n; i++)
        if (process_reader_start(s->processes, pids[i], &starts[kept]) == 0)
            pids[kept++] = pids[i];
    memcpy(starts + kept, pids, kept * sizeof(*pids));
    return scanner_put(s, &(ScanResult){.kind = SCAN_IS_LOOK,
                                        .number = begin_ns,
                                        .data = TAKE_PTR(starts),
                                        .data_size = kept * (sizeof(*starts) + sizeof(*pids))});
}

static void scanner_begin_pass(Scanner *s) {
    int r;

    free(s->pids);
    s->pids = NULL;
    s->n_pids = s->next_pid = 0;
    s->pass_begin_ns = clock_monotonic_ns();
    s->in_pass = true;
    s->is_partial = !atomic_load(&s->one_user) && !process_shows_all(s->proc);
    r = scanner_list_processes(s, &s->pids, &s->n_pids);
    if (r == 0 && s->is_partial)
        r = -EACCES;
    if (r < 0 && !s->has_warned)
        log_warning(r, "Cannot see all processes in /proc, so running ones have no name; mount it "
                       "without hidepid, or with gid= of profd's group: %m");
    s->is_partial |= r < 0;
    s->has_warned |= r < 0;
}

static int scanner_go_on_with_pass(Scanner *s, bool begins) {
    if (begins)
        scanner_begin_pass(s);
    if (s->next_pid < s->n_pids)
        return scanner_read_process(s, s->pids[s->next_pid++]);
    s->in_pass = false;
    return scanner_put(
        s, &(ScanResult){.kind = SCAN_IS_ALL_DONE, .number = s->is_partial ? 0 : s->pass_begin_ns});
}

static int scanner_work(Scanner *s, const ScanRequest *request) {
    int r;

    switch (request->work) {
    case SCAN_KERNEL:
        r = scanner_read_kernel(s);
        thread_limit_nice(THREAD_NICE_USUAL);
        return r;
    case SCAN_CGROUPS:
        return scanner_read_cgroups(s);
    case SCAN_LIST:
        return scanner_list_now(s);
    case SCAN_PROCESS:
        return scanner_read_process(s, request->pid);
    case SCAN_IMAGE:
        return scanner_read_image(s, request->image);
    case SCAN_TABLE:
        return scanner_read_table(s, request->image);
    case SCAN_PASS:
        return scanner_go_on_with_pass(s, request->begins);
    case SCAN_STOP:
        break;
    }
    return -ECANCELED;
}

/* Asks the keeper on this thread, since the loop's thread must not wait. */
static void scanner_note_cpu(Scanner *s) {
    uint64_t now_ns = clock_monotonic_ns();
    KeeperStatus status;

    atomic_store(&s->scan_cpu_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID));
    if (now_ns - s->cpu_noted_ns < CPU_NOTED_NS || keeper_status(s->keeper, &status) < 0)
        return;
    s->cpu_noted_ns = now_ns;
    /* The times of helpers that have ended are less precise, so never let the sum decrease. */
    if (status.cpu_ns > atomic_load(&s->keeper_cpu_ns))
        atomic_store(&s->keeper_cpu_ns, status.cpu_ns);
}

static void *scanner_run(void *userdata) {
    Scanner *s = userdata;
    ScanRequest request;

    do {
        atomic_store(&s->busy_since_ns, clock_monotonic_ns());
        scanner_note_cpu(s);
        atomic_store(&s->busy_since_ns, 0);
        request = scan_queue_next(s->queue, s->in_pass);
        atomic_store(&s->busy_since_ns, clock_monotonic_ns());
    } while (scanner_work(s, &request) != -ECANCELED);
    return NULL;
}

static int scanner_deliver_list(const ScannerSinks *sinks, const ScanResult *result) {
    size_t n = result->data_size / (sizeof(uint64_t) + sizeof(uint32_t));
    const uint64_t *starts = result->data;
    ScannerListing seen = {.begin_ns = result->number,
                           .starts_ns = starts,
                           .pids = (const uint32_t *)(starts + n),
                           .n = n};

    return sinks->on_processes(sinks->userdata, &seen);
}

static int scanner_deliver(Scanner *s, const ScanResult *result) {
    const ScannerSinks *sinks = &s->sinks;

    switch (result->kind) {
    case SCAN_IS_PROCESS:
        return sinks->on_process(sinks->userdata, result->data);
    case SCAN_IS_KERNEL:
        return sinks->on_kernel(sinks->userdata,
                                (Bytes){.data = result->data, .size = result->data_size});
    case SCAN_IS_CGROUP:
        return sinks->on_cgroup(sinks->userdata, result->number, result->data);
    case SCAN_IS_BUILD_ID:
        return sinks->on_build_id(
            sinks->userdata, result->number,
            (Bytes){.data = result->build_id.bytes, .size = result->build_id.size});
    case SCAN_IS_TABLE:
        table_cache_answer(s->tables, result->data, clock_monotonic_ns());
        return 0;
    case SCAN_IS_CGROUPS_DONE:
        return sinks->on_cgroups_done(sinks->userdata, result->number);
    case SCAN_IS_ALL_DONE:
        return sinks->on_all_done(sinks->userdata, result->number);
    case SCAN_IS_LOOK:
        return scanner_deliver_list(sinks, result);
    }
    return 0;
}

static int scanner_on_results(void *userdata) {
    Scanner *s = userdata;
    ScanResult *chain = scan_queue_take(s->queue, SLICE);
    int r = 0;

    for (ScanResult *result; (result = chain);) {
        chain = result->next;
        if (r >= 0)
            r = scanner_deliver(s, result);
        scan_result_free(result);
    }
    return r < 0 ? r : 0;
}

int scanner_await(Scanner *s, uint64_t limit_ns) {
    struct pollfd poll_fd = {.fd = scan_queue_fd(s->queue), .events = POLLIN};
    int r = poll(&poll_fd, 1, (int)MIN(limit_ns / 1000000 + 1, (uint64_t)INT_MAX));

    if (r <= 0)
        return r == 0 || errno == EINTR ? 0 : -errno;
    return scanner_on_results(s);
}

/* If the system's own /proc hides processes from us, the keeper can open one that does not. */
static int scanner_open_proc(Keeper *keeper, int *ret_fd) {
    _cleanup_close_ int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int other;

    if (fd < 0)
        return -errno;
    if (!process_shows_all(fd) && keeper_open_file(keeper, KEEPER_PROC, 0, 0, &other) == 0) {
        (void)close(fd);
        fd = other;
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int scanner_ask(Scanner *s, ScanWork work, uint64_t number, const MappedImage *mapped) {
    size_t n = strnlen(mapped->path, PROCESS_NAME_MAX), size = sizeof(ScanImage) + n + 1;
    ScanImage *image = calloc(1, size);
    int r;

    if (!image)
        return -ENOMEM;
    *image = (ScanImage){.work = work, .image = number, .mapped = *mapped, .size = size};
    memcpy(image->path, mapped->path, n);
    image->mapped.path = image->path;
    r = scan_queue_ask_image(s->queue, image);
    if (r < 0)
        free(image);
    return r;
}

static int scanner_ask_for_table(void *userdata, const MappedImage *image) {
    return scanner_ask(userdata, SCAN_TABLE, 0, image);
}

/* Nothing can be taken from the rings before the first kernel map is known. */
static int scanner_start_thread(Scanner *s) {
    int r = thread_start(&(ThreadOptions){.name = "profd-scan", .nice = THREAD_NICE_PROMPT},
                         scanner_run, s, &s->thread);

    s->has_thread = r == 0;
    return r;
}

int scanner_new(Keeper *keeper, Loop *loop, const ScannerSinks *sinks, Scanner **ret) {
    _cleanup_(scanner_freep) Scanner *s = calloc(1, sizeof(*s));
    TableCacheOptions tables = {
        .limit_bytes = TABLE_CACHE_MAX_BYTES, .ask = scanner_ask_for_table, .userdata = s};
    int r;

    if (!s)
        return -ENOMEM;
    s->proc = -1;
    s->keeper = keeper;
    s->sinks = *sinks;
    r = scan_queue_new(&s->queue);
    if (r == 0)
        r = scanner_open_proc(keeper, &s->proc);
    if (r == 0)
        r = process_reader_new(s->proc, keeper, &s->processes);
    if (r == 0)
        r = kernel_reader_new("", keeper, &s->kernel);
    if (r == 0)
        r = elf_reader_new(keeper, s->processes, s->proc, &s->elf);
    if (r == 0)
        r = table_cache_new(&tables, &s->tables);
    if (r == 0)
        r = loop_add_readable(loop, scan_queue_fd(s->queue), scanner_on_results, s, &s->readable);
    if (r == 0)
        r = scanner_start_thread(s);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(s);
    return 0;
}

Scanner *scanner_free(Scanner *s) {
    if (!s)
        return NULL;
    if (s->has_thread) {
        scan_queue_stop(s->queue);
        keeper_stop_waiting(s->keeper);
        (void)pthread_join(s->thread, NULL);
    }
    loop_source_free(s->readable);
    elf_reader_free(s->elf);
    table_cache_free(s->tables);
    kernel_reader_free(s->kernel);
    process_reader_free(s->processes);
    scan_queue_free(s->queue);
    closep(&s->proc);
    free(s->pids);
    free(s);
    return NULL;
}

ScannerCpu scanner_cpu(const Scanner *s) {
    return (ScannerCpu){.scan_ns = atomic_load(&s->scan_cpu_ns),
                        .keeper_ns = atomic_load(&s->keeper_cpu_ns)};
}

ScannerHealth scanner_health(const Scanner *s, uint64_t now_ns) {
    uint64_t since_ns = atomic_load(&s->busy_since_ns);

    return (ScannerHealth){.is_stuck = since_ns > 0 && now_ns > since_ns + STUCK_NS,
                           .lacks_elf = atomic_load(&s->lacks_elf)};
}

void scanner_limit_to_user(Scanner *s, bool with_kernel) {
    atomic_store(&s->one_user, true);
    atomic_store(&s->without_kernel, !with_kernel);
}

void scanner_see_namespaces(Scanner *s) {
    process_reader_see_namespaces(s->processes);
}

void scanner_see_data(Scanner *s, bool see) {
    process_reader_see_data(s->processes, see);
}

int scanner_list(Scanner *s) {
    scan_queue_ask(s->queue, SCAN_LIST);
    return 0;
}

int scanner_all(Scanner *s) {
    scan_queue_ask(s->queue, SCAN_PASS);
    return 0;
}

int scanner_process(Scanner *s, uint32_t pid) {
    return scan_queue_ask_process(s->queue, pid);
}

int scanner_kernel(Scanner *s) {
    scan_queue_ask(s->queue, SCAN_KERNEL);
    return 0;
}

int scanner_cgroups(Scanner *s) {
    scan_queue_ask(s->queue, SCAN_CGROUPS);
    return 0;
}

int scanner_image(Scanner *s, const HistoryWanted *wanted) {
    return scanner_ask(s, SCAN_IMAGE, wanted->image,
                       &(MappedImage){.pid = wanted->pid,
                                      .start = wanted->start,
                                      .major = wanted->major,
                                      .minor = wanted->minor,
                                      .inode = wanted->inode,
                                      .generation = wanted->generation,
                                      .path = wanted->path});
}

TableCache *scanner_tables(Scanner *s) {
    return s->tables;
}
