/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/scanner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>

#include "scan/scan-reader.h"
#include "util/clock.h"
#include "util/thread.h"

/*
 * The loop's end of the reading thread: sends requests and gets results. Requests wait in a
 * ScanQueue until the thread takes them, the most urgent first; results wait there until the loop
 * takes them, in slices, so that a thousand processes do not keep it from its rings. A caller gets
 * -ENOBUFS when there are too many requests.
 */

enum { SLICE = 32 }; /* results that are delivered before other sources have their turn */

#define STUCK_NS (30 * NS_PER_SECOND)

struct Scanner {
    ScannerSinks sinks;
    LoopSource *readable;
    bool has_thread;
    pthread_t thread;
    ScanReader reader;
    TableCache *tables;
};

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
            (Bytes){.data = result->build_id.bytes, .size = result->build_id.size},
            result->version);
    case SCAN_IS_CHECK:
        return sinks->on_checked(sinks->userdata,
                                 &(ScannerCheck){.image = result->number,
                                                 .verdict = result->verdict,
                                                 .changed_ns = result->changed_ns});
    case SCAN_IS_TABLE:
        table_cache_answer(s->tables, result->data, clock_monotonic_ns());
        return 0;
    case SCAN_IS_SYMBOLS:
        return sinks->on_symbols(sinks->userdata, result->data);
    case SCAN_IS_CODE_MAP:
        return sinks->on_code_map(sinks->userdata, result->data);
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
    ScanResult *chain = scan_queue_take(s->reader.queue, SLICE);
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
    struct pollfd poll_fd = {.fd = scan_queue_fd(s->reader.queue), .events = POLLIN};
    int r = poll(&poll_fd, 1, (int)MIN(limit_ns / 1000000 + 1, (uint64_t)INT_MAX));

    if (r <= 0)
        return r == 0 || errno == EINTR ? 0 : -errno;
    return scanner_on_results(s);
}

/* Takes over the image, also on failure. */
static int scanner_put(Scanner *s, ScanImage *image) {
    int r = scan_queue_ask_image(s->reader.queue, image);

    if (r < 0)
        scan_image_free(image);
    return r;
}

static ScanImage *scanner_image_of(ScanWork work, uint64_t number, const MappedImage *mapped) {
    size_t n = strnlen(mapped->path, PROCESS_NAME_MAX), size = sizeof(ScanImage) + n + 1;
    ScanImage *image = calloc(1, size);

    if (!image)
        return NULL;
    *image = (ScanImage){.work = work, .image = number, .mapped = *mapped, .size = size};
    memcpy(image->path, mapped->path, n);
    image->mapped.path = image->path;
    return image;
}

static int scanner_ask(Scanner *s, ScanWork work, uint64_t number, const MappedImage *mapped) {
    ScanImage *image = scanner_image_of(work, number, mapped);

    return image ? scanner_put(s, image) : -ENOMEM;
}

static int scanner_ask_for_table(void *userdata, const MappedImage *image) {
    return scanner_ask(userdata, SCAN_TABLE, 0, image);
}

/* Nothing can be taken from the rings before the first kernel map is known. */
static int scanner_start_thread(Scanner *s) {
    int r = thread_start(&(ThreadOptions){.name = "profd-scan", .nice = THREAD_NICE_PROMPT},
                         scan_reader_run, &s->reader, &s->thread);

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
    s->sinks = *sinks;
    r = scan_reader_init(&s->reader, keeper);
    if (r == 0)
        r = table_cache_new(&tables, &s->tables);
    s->reader.tables = s->tables;
    if (r == 0)
        r = loop_add_readable(loop, scan_queue_fd(s->reader.queue), scanner_on_results, s,
                              &s->readable);
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
        scan_queue_stop(s->reader.queue);
        keeper_stop_waiting(s->reader.keeper);
        (void)pthread_join(s->thread, NULL);
    }
    loop_source_free(s->readable);
    table_cache_free(s->tables);
    scan_reader_done(&s->reader);
    free(s);
    return NULL;
}

ScannerCpu scanner_cpu(const Scanner *s) {
    return (ScannerCpu){.scan_ns = atomic_load(&s->reader.scan_cpu_ns),
                        .keeper_ns = atomic_load(&s->reader.keeper_cpu_ns)};
}

ScannerHealth scanner_health(const Scanner *s, uint64_t now_ns) {
    uint64_t since_ns = atomic_load(&s->reader.busy_since_ns);

    return (ScannerHealth){.is_stuck = since_ns > 0 && now_ns > since_ns + STUCK_NS,
                           .lacks_elf = atomic_load(&s->reader.lacks_elf)};
}

void scanner_limit_to_user(Scanner *s, bool with_kernel) {
    atomic_store(&s->reader.one_user, true);
    atomic_store(&s->reader.without_kernel, !with_kernel);
}

void scanner_see_namespaces(Scanner *s) {
    process_reader_see_namespaces(s->reader.processes);
}

void scanner_see_data(Scanner *s, bool see) {
    process_reader_see_data(s->reader.processes, see);
}

int scanner_list(Scanner *s) {
    scan_queue_ask(s->reader.queue, SCAN_LIST);
    return 0;
}

int scanner_all(Scanner *s) {
    scan_queue_ask(s->reader.queue, SCAN_PASS);
    return 0;
}

int scanner_process(Scanner *s, uint32_t pid) {
    return scan_queue_ask_process(s->reader.queue, pid);
}

int scanner_kernel(Scanner *s) {
    scan_queue_ask(s->reader.queue, SCAN_KERNEL);
    return 0;
}

int scanner_cgroups(Scanner *s) {
    scan_queue_ask(s->reader.queue, SCAN_CGROUPS);
    return 0;
}

int scanner_image(Scanner *s, const HistoryWanted *wanted) {
    ScanImage *image = scanner_image_of(wanted->checks ? SCAN_CHECK : SCAN_IMAGE, wanted->image,
                                        &(MappedImage){.pid = wanted->pid,
                                                       .start = wanted->start,
                                                       .major = wanted->major,
                                                       .minor = wanted->minor,
                                                       .inode = wanted->inode,
                                                       .generation = wanted->generation,
                                                       .path = wanted->path});

    if (!image)
        return -ENOMEM;
    image->version = wanted->version;
    return scanner_put(s, image);
}

void scanner_keep_symbols(Scanner *s, const SymbolsFilter *filter) {
    atomic_store(&s->reader.filter, filter);
}

int scanner_symbols(Scanner *s, const MappedImage *image) {
    return scanner_ask(s, SCAN_SYMBOLS, 0, image);
}

int scanner_code_map(Scanner *s, const MappedImage *mapped, const CodeMapAnswer *known) {
    ScanImage *image = scanner_image_of(SCAN_CODE_MAP, 0, mapped);

    if (!image)
        return -ENOMEM;
    if (known) {
        image->fd = fcntl(known->source, F_DUPFD_CLOEXEC, 3);
        image->has_fd = image->fd >= 0;
        image->start_ns = known->start_ns;
        image->file_size = known->size;
        image->mtime_ns = known->mtime_ns;
    }
    if (known && !image->has_fd) {
        scan_image_free(image);
        return -EMFILE;
    }
    return scanner_put(s, image);
}

TableCache *scanner_tables(Scanner *s) {
    return s->tables;
}
