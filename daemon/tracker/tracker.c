/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tracker/tracker.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "scan/baseline.h"
#include "scan/kernel.h"
#include "tracker/cgroup-name.h"
#include "tracker/kernel-range.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * A baseline was read at some time between begin and end; whether the process changed meanwhile is
 * known only after a sweep that began after the end has drained side-band. So baselines wait for
 * such a sweep. Until the first pass is complete the floor stays below the oldest sample, so that
 * samples from before their process was read still find its state.
 */

enum { TRIES_MAX = 8, RETRIED_MAX = 256 };

#define DATA_WAIT_NS      (3 * NS_PER_SECOND) /* for data mappings of running processes */
#define MODULES_PERIOD_NS (30 * NS_PER_SECOND)

/* From one reading of /proc after a loss to the next; it grows while losses go on. */
#define LOSS_PAUSE_FIRST_NS NS_PER_SECOND
#define LOSS_PAUSE_LAST_NS  (60 * NS_PER_SECOND)

typedef struct Retried {
    uint32_t pid, tries;
} Retried;

struct Tracker {
    History *history;
    Scanner *scanner;
    CgroupNames *cgroup_names;
    LoopCallback on_ready, on_due, on_answered;
    int (*on_processes)(void *userdata, const ScannerListing *listing);
    int (*on_known)(void *userdata, uint32_t pid);
    int (*on_symbols)(void *userdata, SymbolsAnswer *answer);
    int (*on_code_map)(void *userdata, CodeMapAnswer *answer);
    int (*on_group)(void *userdata, const char *path);
    int (*on_groups_done)(void *userdata, uint64_t begin_ns);
    void *userdata;
    Baseline **waiting;
    size_t n_waiting;
    Retried retried[RETRIED_MAX];
    size_t n_retried;
    KernelRanges kernel;
    const KernelRange *recent; /* the range of the last sample; NULL: none */
    uint64_t modules_read_ns;
    bool knows_kernel, all_read, ready, sees_namespaces, sees_data;
    uint64_t all_begin_ns;
    uint64_t resyncs;
    bool has_lost; /* side-band, since /proc was read again last */
    uint64_t loss_resync_ns, loss_pause_ns;
};

static int tracker_on_kernel(void *userdata, Bytes records) {
    Tracker *tracker = userdata;
    int r = history_install_kernel(tracker->history, records);

    tracker->recent = NULL;
    if (r == 0)
        r = kernel_ranges_read(&tracker->kernel, records);
    if (r < 0)
        return log_error(r, "Failed to keep the map of the kernel: %m");
    if (!tracker->knows_kernel) {
        tracker->knows_kernel = true;
        r = tracker->on_due(tracker->userdata);
    }
    return r;
}

static int tracker_on_process(void *userdata, const Baseline *baseline) {
    Tracker *tracker = userdata;
    Baseline *copy = baseline_copy(baseline), **slot;

    slot = copy ? array_grow(&tracker->waiting, &tracker->n_waiting) : NULL;
    if (!slot) {
        free(copy);
        return log_error(-ENOMEM, "Failed to keep process %" PRIu32 ": %m", baseline->pid);
    }
    *slot = copy;
    return tracker->on_due(tracker->userdata);
}

static int tracker_on_cgroup(void *userdata, uint64_t id, const char *path) {
    Tracker *tracker = userdata;
    int r = history_install_cgroup(tracker->history, id,
                                   (Bytes){.data = (const uint8_t *)path, .size = strlen(path)});

    return r < 0 || !tracker->on_group ? r : tracker->on_group(tracker->userdata, path);
}

static int tracker_on_cgroups_done(void *userdata, uint64_t begin_ns) {
    Tracker *tracker = userdata;

    return tracker->on_groups_done ? tracker->on_groups_done(tracker->userdata, begin_ns) : 0;
}

static int tracker_ask_for_build_ids(Tracker *tracker) {
    HistoryWanted wanted;
    int r = 0;

    while (r == 0 && history_next_wanted(tracker->history, &wanted) > 0) {
        r = scanner_image(tracker->scanner, &wanted);
        if (r < 0)
            history_put_back_wanted(tracker->history);
    }
    return r == -ENOBUFS ? 0 : r;
}

/* Schedule a sweep that writes mappings with their build ids, one for all answers. */
static int tracker_note_answer(Tracker *tracker) {
    int r = tracker_ask_for_build_ids(tracker);

    if (r < 0 || history_waits_until(tracker->history) > 0)
        return r;
    if (history_has_answers(tracker->history))
        return tracker->on_due(tracker->userdata);
    return tracker->on_answered ? tracker->on_answered(tracker->userdata) : 0;
}

static int tracker_on_build_id(void *userdata, uint64_t image, Bytes build_id, uint64_t version) {
    Tracker *tracker = userdata;

    history_set_build_id(tracker->history, image, build_id, version);
    return tracker_note_answer(tracker);
}

/* Its unwind table is that of the old content, too. */
static int tracker_on_checked(void *userdata, const ScannerCheck *check) {
    Tracker *tracker = userdata;
    HistoryWanted changed;

    if (history_set_checked(tracker->history, check->image, check->verdict, check->changed_ns,
                            &changed))
        table_cache_doubt(scanner_tables(tracker->scanner),
                          &(MappedImage){.major = changed.major,
                                         .minor = changed.minor,
                                         .inode = changed.inode,
                                         .generation = changed.generation});
    return tracker_note_answer(tracker);
}

static int tracker_on_symbols(void *userdata, SymbolsAnswer *answer) {
    Tracker *tracker = userdata;

    return tracker->on_symbols ? tracker->on_symbols(tracker->userdata, answer) : 0;
}

static int tracker_on_code_map(void *userdata, CodeMapAnswer *answer) {
    Tracker *tracker = userdata;

    return tracker->on_code_map ? tracker->on_code_map(tracker->userdata, answer) : 0;
}

static int tracker_on_all_done(void *userdata, uint64_t begin_ns) {
    Tracker *tracker = userdata;

    tracker->all_read = true;
    tracker->all_begin_ns = begin_ns;
    return tracker->on_due(tracker->userdata);
}

static int tracker_on_processes(void *userdata, const ScannerListing *listing) {
    Tracker *tracker = userdata;

    return tracker->on_processes(tracker->userdata, listing);
}

/* A followed process is read when it is followed. */
static int tracker_begin_reading(Tracker *tracker, const TrackerOptions *options) {
    int r;

    if (options->one_user)
        scanner_limit_to_user(tracker->scanner, options->sees_kernel);
    r = scanner_kernel(tracker->scanner);
    if (r == 0)
        r = scanner_cgroups(tracker->scanner);
    if (r == 0)
        r = options->one_user ? scanner_list(tracker->scanner) : scanner_all(tracker->scanner);
    return r;
}

static void tracker_set_data(Tracker *tracker, bool see) {
    tracker->sees_data = see;
    history_keep_data(tracker->history, see);
    scanner_see_data(tracker->scanner, see);
}

int tracker_new(const TrackerOptions *options, Tracker **ret) {
    _cleanup_(tracker_freep) Tracker *tracker = calloc(1, sizeof(*tracker));
    ScannerSinks sinks = {tracker_on_process,
                          tracker_on_kernel,
                          tracker_on_cgroup,
                          tracker_on_cgroups_done,
                          tracker_on_build_id,
                          tracker_on_checked,
                          tracker_on_symbols,
                          tracker_on_code_map,
                          tracker_on_all_done,
                          tracker_on_processes,
                          tracker};
    BuildId vdso;
    int r;

    if (!tracker)
        return -ENOMEM;
    tracker->on_ready = options->on_ready;
    tracker->on_due = options->on_due;
    tracker->on_answered = options->on_answered;
    tracker->on_processes = options->on_processes;
    tracker->on_known = options->on_known;
    tracker->on_symbols = options->on_symbols;
    tracker->on_code_map = options->on_code_map;
    tracker->on_group = options->on_group;
    tracker->on_groups_done = options->on_groups_done;
    tracker->userdata = options->userdata;
    r = history_new(&(ProcessLimits){.memory_bytes = options->table_bytes}, &tracker->history);
    if (r < 0)
        return r;
    history_set_identify(tracker->history, HISTORY_ASKS);
    if (kernel_vdso_build_id(&vdso) == 0)
        history_set_vdso(tracker->history, (Bytes){.data = vdso.bytes, .size = vdso.size});
    r = cgroup_names_new("", cgroup_names_is_initial(), &tracker->cgroup_names);
    if (r < 0)
        return r;
    r = scanner_new(options->keeper, options->loop, &sinks, &tracker->scanner);
    if (r == 0)
        tracker_set_data(tracker, options->sees_data);
    if (r == 0)
        r = tracker_begin_reading(tracker, options);
    if (r < 0)
        return log_error(r, "Failed to start reading /proc: %m");
    *ret = TAKE_PTR(tracker);
    return 0;
}

Tracker *tracker_free(Tracker *tracker) {
    if (!tracker)
        return NULL;
    scanner_free(tracker->scanner);
    cgroup_names_free(tracker->cgroup_names);
    history_free(tracker->history);
    for (size_t i = 0; i < tracker->n_waiting; i++)
        free(tracker->waiting[i]);
    free(tracker->waiting);
    kernel_ranges_done(&tracker->kernel);
    free(tracker);
    return NULL;
}

History *tracker_history(Tracker *tracker) {
    return tracker->history;
}

TableCache *tracker_tables(Tracker *tracker) {
    return scanner_tables(tracker->scanner);
}

void tracker_keep_symbols(Tracker *tracker, const SymbolsFilter *filter) {
    scanner_keep_symbols(tracker->scanner, filter);
}

int tracker_symbols(Tracker *tracker, const MappedImage *image) {
    return scanner_symbols(tracker->scanner, image);
}

int tracker_code_map(Tracker *tracker, const MappedImage *image, const CodeMapAnswer *known) {
    return scanner_code_map(tracker->scanner, image, known);
}

bool tracker_knows_kernel(const Tracker *tracker) {
    return tracker->knows_kernel;
}

bool tracker_is_ready(const Tracker *tracker) {
    return tracker->ready;
}

uint64_t tracker_resyncs(const Tracker *tracker) {
    return tracker->resyncs;
}

int tracker_begin(Tracker *tracker, uint64_t floor_ns) {
    return history_resume(tracker->history, floor_ns);
}

static int tracker_feed_cgroup(Tracker *tracker, const PdEvent *side_band, const PdRecord *record) {
    PdBody body;
    Bytes path;
    int r = pd_record_parse(record, side_band, &body);

    if (r < 0)
        return r;
    path = cgroup_names_spell(tracker->cgroup_names, body.cgroup.id, body.cgroup.path);
    return history_install_cgroup(tracker->history, body.cgroup.id, path);
}

int tracker_feed(Tracker *tracker, const PdEvent *side_band, Bytes records) {
    PdRecord record;
    int r = 0;

    while (r == 0 && pd_records_next(&records, &record)) {
        r = record.type == PD_RECORD_CGROUP ? tracker_feed_cgroup(tracker, side_band, &record)
                                            : history_feed(tracker->history, &record, side_band);
        if (r == -EBADMSG) {
            log_debug("A record of type %" PRIu32 " in the side-band makes no sense", record.type);
            r = 0;
        }
    }
    return r;
}

/* The retry counter of a process that changed while it was read; NULL: there are too many. */
static Retried *tracker_retried_of(Tracker *tracker, uint32_t pid) {
    for (size_t i = 0; i < tracker->n_retried; i++)
        if (tracker->retried[i].pid == pid)
            return &tracker->retried[i];
    if (tracker->n_retried == RETRIED_MAX)
        return NULL;
    tracker->retried[tracker->n_retried] = (Retried){.pid = pid};
    return &tracker->retried[tracker->n_retried++];
}

static int tracker_note_known(Tracker *tracker, uint32_t pid) {
    return tracker->on_known ? tracker->on_known(tracker->userdata, pid) : 0;
}

/* A process that changes all the time is read a few times, and then accepted as it was found. */
static int tracker_install(Tracker *tracker, Baseline *baseline) {
    int r = history_install(tracker->history, baseline);
    Retried *retried = r > 0 ? tracker_retried_of(tracker, baseline->pid) : NULL;

    if (r == 0)
        return tracker_note_known(tracker, baseline->pid);
    if (r < 0)
        return r == -EAGAIN ? 0 : r;
    if (retried && retried->tries++ < TRIES_MAX)
        return scanner_process(tracker->scanner, baseline->pid);
    baseline->force = true;
    r = history_install(tracker->history, baseline);
    return r < 0 ? r : tracker_note_known(tracker, baseline->pid);
}

static int tracker_install_waiting(Tracker *tracker, uint64_t start_ns) {
    size_t kept = 0;
    int r = 0;

    for (size_t i = 0; i < tracker->n_waiting; i++) {
        Baseline *baseline = tracker->waiting[i];

        if (r < 0 || baseline->end_ns >= start_ns) {
            tracker->waiting[kept++] = baseline;
            continue;
        }
        r = tracker_install(tracker, baseline);
        free(baseline);
    }
    tracker->n_waiting = kept;
    return r;
}

static int tracker_finish_pass(Tracker *tracker) {
    int r = 0;

    /* 0: the pass was incomplete, so a missing process may still live. */
    if (tracker->all_begin_ns > 0)
        r = history_sweep_missing(tracker->history, tracker->all_begin_ns);
    tracker->all_read = false;
    tracker->n_retried = 0;
    history_hold_floor(tracker->history, 0);
    if (r < 0 || tracker->ready)
        return r;
    tracker->ready = true;
    return tracker->on_ready(tracker->userdata);
}

int tracker_settle(Tracker *tracker, uint64_t start_ns) {
    int r = history_settle(tracker->history, start_ns);

    if (r == 0)
        r = tracker_install_waiting(tracker, start_ns);
    /* Before samples are drained, so that answers may be there when the sweep ends. */
    if (r == 0)
        r = tracker_ask_for_build_ids(tracker);
    if (r == 0 && tracker->all_read && tracker->n_waiting == 0 && start_ns > tracker->all_begin_ns)
        r = tracker_finish_pass(tracker);
    return r;
}

static int tracker_resync_if_due(Tracker *tracker, uint64_t now_ns) {
    uint64_t since_ns = now_ns - tracker->loss_resync_ns;

    if (!tracker->has_lost || (tracker->loss_resync_ns > 0 && since_ns < tracker->loss_pause_ns))
        return 0;
    tracker->has_lost = false;
    tracker->loss_pause_ns =
        since_ns > 2 * tracker->loss_pause_ns
            ? LOSS_PAUSE_FIRST_NS
            : MIN(tracker->loss_pause_ns + tracker->loss_pause_ns / 4, LOSS_PAUSE_LAST_NS);
    tracker->loss_resync_ns = now_ns;
    return tracker_resync(tracker);
}

int tracker_resync_after_loss(Tracker *tracker) {
    tracker->has_lost = true;
    return tracker_resync_if_due(tracker, clock_monotonic_ns());
}

int tracker_complete(Tracker *tracker, uint64_t start_ns) {
    int r = tracker_resync_if_due(tracker, clock_monotonic_ns());
    uint32_t pid;

    if (r < 0 || !tracker->ready)
        return r;
    history_complete(tracker->history, start_ns);
    while (r == 0 && history_next_unknown(tracker->history, &pid) > 0)
        r = scanner_process(tracker->scanner, pid);
    /* Recordings have just named more images. */
    if (r == 0)
        r = tracker_ask_for_build_ids(tracker);
    return r == -ENOBUFS ? 0 : r;
}

int tracker_await(Tracker *tracker, uint64_t limit_ns) {
    uint64_t end_ns = clock_monotonic_ns() + limit_ns;
    int r = 0;

    while (r >= 0 && history_waits_until(tracker->history) > 0 && clock_monotonic_ns() < end_ns)
        r = scanner_await(tracker->scanner, end_ns - MIN(end_ns, clock_monotonic_ns()));
    return MIN(r, 0);
}

int tracker_list(Tracker *tracker) {
    return scanner_list(tracker->scanner);
}

int tracker_read(Tracker *tracker, uint32_t pid) {
    int r = scanner_process(tracker->scanner, pid);

    return r == -ENOBUFS ? 0 : r;
}

void tracker_walk_groups(Tracker *tracker) {
    (void)scanner_cgroups(tracker->scanner);
}

int tracker_pass(Tracker *tracker) {
    return scanner_all(tracker->scanner);
}

int tracker_see_namespaces(Tracker *tracker) {
    if (tracker->sees_namespaces)
        return 0;
    tracker->sees_namespaces = true;
    scanner_see_namespaces(tracker->scanner);
    return scanner_all(tracker->scanner);
}

int tracker_see_data(Tracker *tracker, bool see) {
    if (tracker->sees_data == see)
        return 0;
    tracker_set_data(tracker, see);
    if (!see)
        return 0;
    history_hold_floor(tracker->history, clock_monotonic_ns() + DATA_WAIT_NS);
    return scanner_all(tracker->scanner);
}

int tracker_resync(Tracker *tracker) {
    tracker->resyncs++;
    return scanner_all(tracker->scanner);
}

ScannerHealth tracker_health(const Tracker *tracker) {
    return scanner_health(tracker->scanner, clock_monotonic_ns());
}

ScannerCpu tracker_cpu(const Tracker *tracker) {
    return scanner_cpu(tracker->scanner);
}

void tracker_see_kernel(Tracker *tracker, uint64_t address, uint64_t time_ns) {
    const KernelRange *recent = tracker->recent;

    if (tracker->kernel.n == 0 || (recent && address >= recent->start && address < recent->end))
        return;
    tracker->recent = kernel_ranges_find(&tracker->kernel, address);
    if (tracker->recent)
        return;
    /* Generated code is in no list of modules, and its addresses are sampled again and again. */
    if (tracker->modules_read_ns > 0 && time_ns < tracker->modules_read_ns + MODULES_PERIOD_NS)
        return;
    tracker->modules_read_ns = time_ns;
    (void)scanner_kernel(tracker->scanner);
}
