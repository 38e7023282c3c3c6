/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/scan-reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "scan/baseline.h"
#include "scan/cgroup-scan.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/thread.h"

/*
 * The reading thread: it takes the most urgent request, reads, and puts the result into the queue.
 * It waits when there are too many results. A pass over all processes reads one at a time, only
 * while there is nothing more urgent.
 */

enum { IMAGE_TRIES = 3 }; /* for an image that was requested while the helper was not available */

/* The time that waiting for processes that are late may take, one part in this many. */
#define LATE_SHARE    20
#define LATE_FIRST_NS (2 * NS_PER_SECOND)

/* The time for which a pass waits for processes that are late. */
#define PASS_WAITS_NS (10 * NS_PER_SECOND)

#define CPU_NOTED_NS (NS_PER_SECOND / 10)

/* The CPU time that images may take: a burst, and a share of one CPU over time. */
#define IMAGES_BURST_NS NS_PER_SECOND
#define IMAGES_SHARE    20 /* one part in this many */

#define LONG_WAIT_NS NS_PER_SECOND

/* Takes over the data, also on failure. */
static int scan_reader_put(ScanReader *s, const ScanResult *filled) {
    ScanResult *result = malloc(sizeof(*result));

    if (!result) {
        free(filled->data);
        return log_error(-ENOMEM, "Failed to hand on what was read from /proc: %m");
    }
    *result = *filled;
    result->size = sizeof(*result) + result->data_size;
    return scan_queue_put(s->queue, result);
}

static int scan_reader_read_kernel(ScanReader *s) {
    static LogRate rate = {.interval_ns = 600 * NS_PER_SECOND, .burst = 1};
    _cleanup_(buffer_done) Buffer records = {};
    int r = kernel_reader_read(s->kernel, &records);

    if (r < 0 && !atomic_load(&s->without_kernel))
        log_limited(&rate, LOG_LEVEL_WARNING, r,
                    "Cannot read the addresses of the kernel's code, so kernel samples have no "
                    "symbols; that takes kernel.kptr_restrict below 2: %m");
    /* An empty set is a result too. */
    return scan_reader_put(s, &(ScanResult){.kind = SCAN_IS_KERNEL,
                                            .data = TAKE_PTR(records.data),
                                            .data_size = records.size});
}

static int scan_reader_put_cgroup(void *userdata, uint64_t id, const char *path) {
    char *copy = strdup(path);

    if (!copy)
        return -ENOMEM;
    return scan_reader_put(userdata, &(ScanResult){.kind = SCAN_IS_CGROUP,
                                                   .number = id,
                                                   .data = copy,
                                                   .data_size = strlen(path) + 1});
}

static int scan_reader_read_cgroups(ScanReader *s) {
    uint64_t begin_ns = clock_monotonic_ns();
    int r = cgroup_walk("", scan_reader_put_cgroup, s);

    if (r < 0 && r != -ENOENT && r != -ECANCELED)
        log_warning(r, "Cannot walk the cgroups, so samples may have the number of a cgroup "
                       "instead of its path: %m");
    if (r == -ECANCELED)
        return r;
    return scan_reader_put(s, &(ScanResult){.kind = SCAN_IS_CGROUPS_DONE, .number = begin_ns});
}

/* r: how reading the process ended. */
static int scan_reader_put_process(ScanReader *s, uint32_t pid, int r, const Baseline *baseline) {
    Baseline *copy;

    if (r < 0) {
        if (r != -ESRCH) {
            (void)log_at(LOG_LEVEL_DEBUG, r, "Cannot read process %" PRIu32 ", ignoring: %m", pid);
            s->is_partial = true;
        }
        return 0;
    }
    copy = baseline_copy(baseline);
    if (!copy)
        return log_error(-ENOMEM, "Failed to keep process %" PRIu32 ": %m", pid);
    return scan_reader_put(
        s, &(ScanResult){.kind = SCAN_IS_PROCESS, .data = copy, .data_size = baseline_size(copy)});
}

static int scan_reader_read_process(ScanReader *s, uint32_t pid) {
    Baseline baseline;
    int r = process_reader_read(s->processes, pid, &baseline);

    return scan_reader_put_process(s, pid, r, &baseline);
}

/* Reads the processes that are late when other work has had its share of the time, unless that is
 * planned already. */
static void scan_reader_plan_late(ScanReader *s, uint64_t waited_ns) {
    if (s->late_is_planned || !process_reader_has_late(s->processes))
        return;
    s->late_is_planned = true;
    scan_queue_rest(s->queue, SCAN_LATE, clock_monotonic_ns() + waited_ns * LATE_SHARE);
    scan_queue_ask(s->queue, SCAN_LATE);
}

static int scan_reader_read_late(ScanReader *s) {
    uint64_t begin_ns = clock_monotonic_ns();
    Baseline baseline;
    uint32_t pid = 0;
    int r = process_reader_read_late(s->processes, &pid, &baseline);

    s->late_is_planned = false;
    scan_reader_plan_late(s, r == 0 || r == -ETIMEDOUT ? clock_monotonic_ns() - begin_ns
                                                       : LATE_FIRST_NS / LATE_SHARE);
    return r == -ENODATA || r == -ETIMEDOUT ? 0 : scan_reader_put_process(s, pid, r, &baseline);
}

typedef struct ScanCost {
    uint64_t cpu_ns, wall_ns;
} ScanCost;

static ScanCost scan_reader_cost(const ScanReader *s) {
    return (ScanCost){.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + elf_reader_cpu_ns(s->elf),
                      .wall_ns = clock_monotonic_ns()};
}

/* Any user can map any number of files, each as expensive as we allow, so files that exceeded their
 * share delay later files; other work is not delayed. Work that waited long, as for a file system
 * that does not answer, leaves as much time to work that is less urgent. */
static void scan_reader_charge(ScanReader *s, ScanWork work, const ScanCost *before) {
    ScanDebt *debt = work == SCAN_CHECK   ? &s->check_debt
                     : work == SCAN_IMAGE ? &s->build_id_debt
                     : work == SCAN_TABLE ? &s->table_debt
                                          : &s->kept_debt;
    ScanCost now = scan_reader_cost(s);
    uint64_t used_ns = now.cpu_ns - before->cpu_ns, waited_ns = now.wall_ns - before->wall_ns,
             earned_ns = (now.wall_ns - debt->at_ns) / IMAGES_SHARE;

    debt->ns = used_ns + (debt->ns > earned_ns ? debt->ns - earned_ns : 0);
    debt->at_ns = now.wall_ns;
    if (debt->ns > IMAGES_BURST_NS)
        scan_queue_rest(s->queue, work, now.wall_ns + (debt->ns - IMAGES_BURST_NS) * IMAGES_SHARE);
    if (waited_ns >= LONG_WAIT_NS)
        scan_queue_put_last(s->queue, work, now.wall_ns + waited_ns);
}

/* Whether a file that was just read with result r is put back into the queue. */
static bool scan_reader_asks_again(ScanReader *s, ScanImage *image, int r) {
    uint64_t ready_ns;

    atomic_store(&s->lacks_elf, elf_reader_lacks_helper(s->elf));
    if (r != -EAGAIN || ++image->tries >= IMAGE_TRIES)
        return false;
    ready_ns = elf_reader_ready_ns(s->elf);
    if (ready_ns > clock_monotonic_ns())
        scan_queue_rest(s->queue, image->work, ready_ns);
    return scan_queue_ask_image(s->queue, image) == 0;
}

static int scan_reader_check_image(ScanReader *s, ScanImage *image) {
    ScanResult result = {.kind = SCAN_IS_CHECK, .number = image->image};
    ScanCost before = scan_reader_cost(s);
    int r = elf_reader_check(s->elf, &image->mapped, image->version, &result.changed_ns);

    result.verdict = r < 0 ? HISTORY_UNPROVEN : r > 0 ? HISTORY_CHANGED : HISTORY_SAME;
    scan_reader_charge(s, SCAN_CHECK, &before);
    scan_image_free(image);
    return scan_reader_put(s, &result);
}

static int scan_reader_read_image(ScanReader *s, ScanImage *image) {
    ScanResult result = {.kind = SCAN_IS_BUILD_ID, .number = image->image};
    ScanCost before = scan_reader_cost(s);
    int r = elf_reader_build_id(s->elf, &image->mapped, &result.build_id, &result.version);

    if (r < 0)
        result.build_id.size = 0;
    scan_reader_charge(s, SCAN_IMAGE, &before);
    if (scan_reader_asks_again(s, image, r))
        return 0;
    scan_image_free(image);
    return scan_reader_put(s, &result);
}

static int scan_reader_read_table(ScanReader *s, ScanImage *image) {
    ScanCost before = scan_reader_cost(s);
    TableAnswer answer, *copy;
    int r = elf_reader_table(s->elf, &image->mapped, s->tables, &answer);
    size_t table_bytes = answer.table ? answer.table->image.size : 0;

    scan_reader_charge(s, SCAN_TABLE, &before);
    if (scan_reader_asks_again(s, image, r))
        return 0;
    scan_image_free(image);
    copy = malloc(sizeof(*copy));
    if (!copy) {
        mapped_table_free(answer.table);
        return log_error(-ENOMEM, "Failed to keep an unwind table: %m");
    }
    *copy = answer;
    return scan_reader_put(s, &(ScanResult){.kind = SCAN_IS_TABLE,
                                            .data = copy,
                                            .data_size = sizeof(*copy) + table_bytes});
}

/* The file is asked for again when some of those before it were written. */
static int scan_reader_wait_for_disk(ScanReader *s, ScanImage *image) {
    scan_queue_rest(s->queue, SCAN_SYMBOLS, clock_monotonic_ns() + NS_PER_SECOND);
    if (scan_queue_ask_image(s->queue, image) < 0)
        scan_image_free(image);
    return 0;
}

static int scan_reader_read_symbols(ScanReader *s, ScanImage *image) {
    const SymbolsFilter *filter = atomic_load(&s->filter);
    ScanCost before = scan_reader_cost(s);
    SymbolsAnswer *answer = filter ? malloc(sizeof(*answer)) : NULL;
    int r;

    if (!answer) {
        scan_image_free(image);
        return 0;
    }
    if (filter->is_full(filter->userdata)) {
        free(answer);
        return scan_reader_wait_for_disk(s, image);
    }
    r = elf_reader_symbols(s->elf, &image->mapped, filter, answer);
    scan_reader_charge(s, SCAN_SYMBOLS, &before);
    if (scan_reader_asks_again(s, image, r)) {
        free(answer);
        return 0;
    }
    scan_image_free(image);
    return scan_reader_put(
        s, &(ScanResult){.kind = SCAN_IS_SYMBOLS, .data = answer, .data_size = sizeof(*answer)});
}

static int scan_reader_read_code_map(ScanReader *s, ScanImage *image) {
    ScanCost before = scan_reader_cost(s);
    CodeMapAnswer *answer = malloc(sizeof(*answer));

    if (!answer) {
        scan_image_free(image);
        return 0;
    }
    *answer = (CodeMapAnswer){.source = image->has_fd ? TAKE_FD(image->fd) : -1,
                              .fd = -1,
                              .start_ns = image->start_ns,
                              .size = image->file_size,
                              .mtime_ns = image->mtime_ns};
    image->has_fd = false;
    (void)elf_reader_code_map(s->elf, &image->mapped, answer);
    scan_reader_charge(s, SCAN_CODE_MAP, &before);
    scan_image_free(image);
    return scan_reader_put(
        s, &(ScanResult){.kind = SCAN_IS_CODE_MAP, .data = answer, .data_size = sizeof(*answer)});
}

static int scan_reader_list_processes(const ScanReader *s, uint32_t **ret_pids, size_t *ret_n) {
    int r = process_list(s->proc, ret_pids, ret_n);

    if (r == 0 && atomic_load(&s->one_user))
        process_list_of(s->proc, geteuid(), *ret_pids, ret_n);
    return r;
}

/* One allocation: first the start times, then the pids. */
static int scan_reader_list_now(ScanReader *s) {
    uint64_t begin_ns = clock_monotonic_ns();
    _cleanup_free_ uint32_t *pids = NULL;
    _cleanup_free_ uint64_t *starts = NULL;
    size_t n = 0, kept = 0, size;
    int r = scan_reader_list_processes(s, &pids, &n);

    size = n * (sizeof(*starts) + sizeof(*pids));
    starts = r < 0 ? NULL : malloc(MAX(size, (size_t)1));
    if (!starts)
        return log_error(r < 0 ? r : -ENOMEM, "Failed to list the processes in /proc: %m");
    for (size_t i = 0; i < n; i++) {
        r = process_reader_start(s->processes, pids[i], &starts[kept]);
        if (r < 0)
            starts[kept] = 0;
        if (r != -ESRCH)
            pids[kept++] = pids[i];
    }
    memcpy(starts + kept, pids, kept * sizeof(*pids));
    return scan_reader_put(s, &(ScanResult){.kind = SCAN_IS_LOOK,
                                            .number = begin_ns,
                                            .data = TAKE_PTR(starts),
                                            .data_size = kept * (sizeof(*starts) + sizeof(*pids))});
}

static void scan_reader_begin_pass(ScanReader *s) {
    int r;

    free(s->pids);
    s->pids = NULL;
    s->n_pids = s->next_pid = 0;
    s->pass_begin_ns = clock_monotonic_ns();
    s->in_pass = true;
    s->pass_is_told = false;
    s->pass_waited_ns = process_reader_waited_ns(s->processes);
    s->is_partial = !atomic_load(&s->one_user) && !process_shows_all(s->proc);
    r = scan_reader_list_processes(s, &s->pids, &s->n_pids);
    if (r == 0 && s->is_partial)
        r = -EACCES;
    if (r < 0 && !s->has_warned)
        log_warning(r, "Cannot see all processes in /proc, so running ones have no name; mount it "
                       "without hidepid, or with gid= of profd's group: %m");
    s->is_partial |= r < 0;
    s->has_warned |= r < 0;
}

static int scan_reader_end_pass(ScanReader *s, bool is_partial) {
    s->pass_is_told = true;
    return scan_reader_put(
        s, &(ScanResult){.kind = SCAN_IS_ALL_DONE, .number = is_partial ? 0 : s->pass_begin_ns});
}

/* A pass that waits long for processes that do not answer is said to be over, as one that is
 * partial, and then goes on: profd is ready only after the first. */
static int scan_reader_go_on_with_pass(ScanReader *s, bool begins) {
    int r = 0;

    if (begins)
        scan_reader_begin_pass(s);
    if (s->next_pid == s->n_pids) {
        s->in_pass = false;
        return scan_reader_end_pass(s, s->is_partial);
    }
    if (!s->pass_is_told &&
        process_reader_waited_ns(s->processes) > s->pass_waited_ns + PASS_WAITS_NS)
        r = scan_reader_end_pass(s, true);
    return r < 0 ? r : scan_reader_read_process(s, s->pids[s->next_pid++]);
}

static int scan_reader_work(ScanReader *s, const ScanRequest *request) {
    int r;

    switch (request->work) {
    case SCAN_KERNEL:
        r = scan_reader_read_kernel(s);
        thread_limit_nice(THREAD_NICE_USUAL);
        return r;
    case SCAN_CGROUPS:
        return scan_reader_read_cgroups(s);
    case SCAN_LIST:
        return scan_reader_list_now(s);
    case SCAN_PROCESS:
        return scan_reader_read_process(s, request->pid);
    case SCAN_CHECK:
        return scan_reader_check_image(s, request->image);
    case SCAN_IMAGE:
        return scan_reader_read_image(s, request->image);
    case SCAN_TABLE:
        return scan_reader_read_table(s, request->image);
    case SCAN_CODE_MAP:
        return scan_reader_read_code_map(s, request->image);
    case SCAN_SYMBOLS:
        return scan_reader_read_symbols(s, request->image);
    case SCAN_PASS:
        return scan_reader_go_on_with_pass(s, request->begins);
    case SCAN_LATE:
        return scan_reader_read_late(s);
    case SCAN_STOP:
    case SCAN_WORKS:
        break;
    }
    return -ECANCELED;
}

/* Asks the keeper on this thread, since the loop's thread must not wait. */
static void scan_reader_note_cpu(ScanReader *s) {
    uint64_t now_ns = clock_monotonic_ns();
    KeeperStatus status;

    atomic_store(&s->scan_cpu_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID));
    if (now_ns - s->cpu_noted_ns < CPU_NOTED_NS || keeper_status(s->keeper, &status) < 0)
        return;
    /* The other figures begin with this recorder, and the keeper may have served others before. */
    if (s->cpu_noted_ns == 0 && (status.restarts > 0 || status.upgraded))
        s->keeper_before_ns = status.cpu_ns;
    s->cpu_noted_ns = now_ns;
    /* The times of helpers that have ended are less precise, so never let the sum decrease. */
    if (status.cpu_ns > s->keeper_before_ns + atomic_load(&s->keeper_cpu_ns))
        atomic_store(&s->keeper_cpu_ns, status.cpu_ns - s->keeper_before_ns);
}

void *scan_reader_run(void *userdata) {
    ScanReader *s = userdata;
    ScanRequest request;

    do {
        atomic_store(&s->busy_since_ns, clock_monotonic_ns());
        scan_reader_note_cpu(s);
        atomic_store(&s->busy_since_ns, 0);
        scan_reader_plan_late(s, LATE_FIRST_NS / LATE_SHARE);
        request = scan_queue_next(s->queue, s->in_pass);
        atomic_store(&s->busy_since_ns, clock_monotonic_ns());
    } while (scan_reader_work(s, &request) != -ECANCELED);
    return NULL;
}

/* If the system's own /proc hides processes from us, the keeper can open one that does not. */
static int scan_reader_open_proc(Keeper *keeper, int *ret_fd) {
    _cleanup_close_ int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int other;

    if (fd < 0)
        return -errno;
    if (!process_shows_all(fd) && keeper_open_file(keeper, KEEPER_PROC, &other) == 0) {
        (void)close(fd);
        fd = other;
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int scan_reader_init(ScanReader *reader, Keeper *keeper) {
    int r;

    *reader = (ScanReader){.keeper = keeper, .proc = -1};
    r = scan_queue_new(&reader->queue);
    if (r == 0)
        r = scan_reader_open_proc(keeper, &reader->proc);
    if (r == 0)
        r = process_reader_new(reader->proc, keeper, &reader->processes);
    if (r == 0)
        r = kernel_reader_new("", keeper, &reader->kernel);
    if (r == 0)
        r = elf_reader_new(keeper, reader->processes, reader->proc, &reader->elf);
    return r;
}

void scan_reader_done(ScanReader *reader) {
    elf_reader_free(reader->elf);
    kernel_reader_free(reader->kernel);
    process_reader_free(reader->processes);
    scan_queue_free(reader->queue);
    closep(&reader->proc);
    free(reader->pids);
}
