/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "perfdata/host/host.h"
#include "recorder/code-lock.h"
#include "recorder/daemon-private.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/thread.h"

/*
 * Builds the recorder: opens its parts in order, and frees them in reverse. Sampling starts before
 * anything slow, so the rings already collect samples while profd reads the description of the
 * host, scans the store and reads /proc for the first time. The control socket is opened last, when
 * there is something to answer.
 */

/* Called on a writer's thread; the main thread then gives the space in the rings back. */
static void daemon_start_on_written(void *userdata) {
    uint64_t one = 1;

    (void)!write(((Daemon *)userdata)->written_fd, &one, sizeof(one));
}

/* Adds what the host's description lacks: which program records, and by which clock. */
static int daemon_start_note_recorder(PdEnvironment *environment) {
    environment->version = strdup("profd " PROFD_VERSION);
    if (!environment->version)
        return -ENOMEM;
    environment->has[PD_FEATURE_VERSION] = true;
    environment->has[PD_FEATURE_CLOCKID] = true;
    environment->clockid_resolution_ns = 1;
    return 0;
}

static int daemon_start_collect_environment(Daemon *daemon) {
    int r = pd_environment_new(&daemon->environment);

    if (r == 0)
        r = pd_host_collect(daemon->environment, "", daemon->options.argv);
    if (r == 0)
        r = daemon_start_note_recorder(daemon->environment);
    return r < 0 ? log_error(r, "Failed to collect what this host is: %m") : 0;
}

static int daemon_start_seal(void *userdata, int fd, bool sensitive) {
    return keeper_seal(((Daemon *)userdata)->options.keeper, fd, sensitive);
}

/* The final paths of segments and snapshots begin with this path, and clients run in other folders,
 * so it must be absolute. */
static int daemon_start_settle_store_path(Daemon *daemon) {
    bool is_volatile = daemon->config->storage == STORAGE_VOLATILE;
    const char *path = is_volatile ? daemon->options.runtime : daemon->options.store;
    char folder[CONFIG_PATH_MAX] = "";
    int n;

    if (path[0] != '/' && !getcwd(folder, sizeof(folder)))
        return -errno;
    n = snprintf(daemon->store_path, sizeof(daemon->store_path), "%s%s%s%s", folder,
                 path[0] == '/' ? "" : "/", path, is_volatile ? "/store" : "");
    return (size_t)n < sizeof(daemon->store_path) ? 0 : -ENAMETOOLONG;
}

static int daemon_start_open_store(Daemon *daemon) {
    StoreOptions options = {.path = daemon->store_path,
                            .environment = daemon->environment,
                            .config = daemon->config,
                            .memory = {.queue_bytes = daemon->memory.queue_bytes,
                                       .table_bytes = daemon->memory.table_bytes,
                                       .store_bytes = daemon->memory.store_bytes},
                            .seal = daemon_start_seal,
                            .on_written = daemon_start_on_written,
                            .userdata = daemon};
    int r = daemon_start_settle_store_path(daemon);

    if (r < 0)
        return log_error(r, "Failed to find out where store '%s' is: %m", daemon->options.store);
    r = store_open(&options, &daemon->store);
    if (r < 0)
        return r;
    r = housekeeper_new(daemon->loop, "profd-house", &daemon->housekeeper);
    if (r == 0)
        r = follower_list_new(daemon->store, &daemon->followers);
    if (r == 0)
        r = snapshot_engine_new(daemon->store, daemon->loop, daemon->housekeeper,
                                &daemon->snapshots);
    if (r < 0)
        return log_error(r, "Failed to open the snapshots of store '%s': %m", daemon->store_path);
    return vacuum_new(daemon->store, daemon->loop, daemon->options.methods->on_vacuumed, daemon,
                      &daemon->vacuum);
}

#define READER_END_NS (5 * NS_PER_SECOND) /* how long the end waits for a disk */

/* Few hosts ever need this thread. */
static const WorkerOptions reader_options = {.name = "profd-config",
                                             .nice = THREAD_NICE_USUAL,
                                             .end_ns = READER_END_NS,
                                             .starts_on_work = true};

static int daemon_start_make_parts(Daemon *daemon) {
    int r = monitor_new(&daemon->monitor);

    if (r == 0)
        r = waits_new(&daemon->waits);
    if (r == 0)
        r = group_searches_new(&daemon->searches);
    if (r == 0)
        r = housekeeper_new(daemon->loop, "profd-open", &daemon->opener);
    if (r == 0)
        r = worker_new(daemon->loop, &reader_options, &daemon->reader);
    if (r == 0)
        r = keeper_status(daemon->options.keeper, &daemon->keeper);
    return r < 0 ? log_error(r, "Failed to set up the recorder: %m") : 0;
}

static int daemon_start_on_processes(void *userdata, const ScannerListing *listing) {
    Daemon *daemon = userdata;
    int r = process_search_on_listing(daemon->process_search, listing);

    return r == 0 ? daemon_sweep_soon(daemon) : r;
}

static int daemon_start_on_known(void *userdata, uint32_t pid) {
    sampler_release(((Daemon *)userdata)->sampler, pid);
    return 0;
}

static int daemon_start_on_group(void *userdata, const char *path) {
    return group_searches_offer(((Daemon *)userdata)->searches, path);
}

static int daemon_start_on_groups_done(void *userdata, uint64_t begin_ns) {
    group_searches_end(((Daemon *)userdata)->searches, begin_ns);
    return 0;
}

static int daemon_start_on_symbols(void *userdata, SymbolsAnswer *answer) {
    Daemon *daemon = userdata;

    return daemon->binaries ? binaries_on_symbols(daemon->binaries, answer) : 0;
}

static int daemon_start_on_code_map(void *userdata, CodeMapAnswer *answer) {
    Daemon *daemon = userdata;

    return daemon->binaries ? binaries_on_code_map(daemon->binaries, answer) : 0;
}

static int daemon_start_keep_binaries(Daemon *daemon) {
    BinariesOptions options = {.keeper = daemon->options.keeper,
                               .loop = daemon->loop,
                               .store = daemon->store,
                               .tracker = daemon->tracker};
    int r = binaries_new(&options, &daemon->binaries);

    if (r < 0)
        return log_error(r, "Failed to set up the keeping of symbols: %m");
    binaries_configure(daemon->binaries, daemon->config->binaries_max_use_bytes);
    return 0;
}

static int daemon_start_tracker(Daemon *daemon) {
    TrackerOptions options = {.keeper = daemon->options.keeper,
                              .loop = daemon->loop,
                              .on_ready = daemon_on_ready,
                              .on_due = daemon_sweep_soon,
                              .on_answered = daemon_on_answered,
                              .table_bytes = daemon->memory.table_bytes,
                              .one_user = sampler_follows_processes(daemon->sampler),
                              .sees_kernel = sampler_sees_kernel(daemon->sampler),
                              .sees_data = sampler_records_data(daemon->sampler),
                              .on_processes = daemon_start_on_processes,
                              .on_known = daemon_start_on_known,
                              .on_symbols = daemon_start_on_symbols,
                              .on_code_map = daemon_start_on_code_map,
                              .on_group = daemon_start_on_group,
                              .on_groups_done = daemon_start_on_groups_done,
                              .userdata = daemon};
    int r = tracker_new(&options, &daemon->tracker);

    if (r == 0)
        table_cache_limit(tracker_tables(daemon->tracker), daemon->memory.unwind_bytes);
    if (r == 0)
        r = unwinder_new(tracker_history(daemon->tracker), tracker_tables(daemon->tracker),
                         &daemon->unwinder);
    return r == 0 && options.one_user ? process_search_new(daemon->loop, daemon->sampler,
                                                           daemon->tracker, &daemon->process_search)
                                      : r;
}

static int daemon_start_open_aside(void *userdata, void (*work)(void *job), void (*done)(void *job),
                                   void *job) {
    Daemon *daemon = userdata;

    return housekeeper_add(daemon->opener, &(WorkerJob){work, done, job}, true);
}

/* Called when events are open and also when the processes of a session have ended. */
static void daemon_start_on_opened(void *userdata) {
    Daemon *daemon = userdata;

    (void)loop_trigger(daemon->opened_source);
}

static int daemon_start_sampling(Daemon *daemon) {
    SamplerOptions sampler = {.keeper = daemon->options.keeper,
                              .buffer_total_bytes = memory_for_rings(
                                  daemon->config->max_buffer_total_bytes, memory_of_host("")),
                              .max_frequency_hz = daemon->config->max_frequency_hz,
                              .arena_max_bytes = daemon->memory.queue_bytes / 4,
                              .keeper_pid = (uint32_t)getppid(),
                              .locking_is_limited = daemon->keeper.lacks_locking,
                              .aside = daemon_start_open_aside,
                              .on_opened = daemon_start_on_opened,
                              .on_ended = daemon_start_on_opened,
                              .userdata = daemon};
    int r = sampler_new(&sampler, &daemon->sampler);

    byte_rate_set(&daemon->rate, daemon->config->max_bytes_per_sec, clock_monotonic_ns());
    if (r == 0)
        sampler_set_lacks_tables(daemon->sampler, daemon->keeper.lacks_elf);
    /* The tracker must exist before sessions that follow processes start to look for them. */
    if (r == 0 && sampler_follows_processes(daemon->sampler))
        r = daemon_start_tracker(daemon);
    if (r == 0)
        r = daemon_open_sessions(daemon);
    if (r == 0 && !daemon->tracker)
        r = daemon_start_tracker(daemon);
    return r;
}

static void daemon_start_dispose(void *userdata, int fd) {
    /* If nobody takes it, it stays open: better than waiting for it. */
    (void)keeper_dispose(((Daemon *)userdata)->options.keeper, fd);
}

static int daemon_start_listen_to_clients(Daemon *daemon) {
    const DaemonMethods *methods = daemon->options.methods;
    ControlOptions options = {.loop = daemon->loop,
                              .methods = methods->rows,
                              .n_methods = methods->n,
                              .groups = groups_find(),
                              .version = PROFD_VERSION,
                              .on_connection_gone = methods->on_connection_gone,
                              .dispose = daemon_start_dispose,
                              .userdata = daemon};
    int r = keeper_listen(daemon->options.keeper, &options.fd);

    /* Recording does not need the control socket, so go on without it. */
    if (r < 0 && r != -ENOENT)
        log_warning(r, "Failed to get the control socket, so profctl cannot be served: %m");
    return r < 0 ? 0 : control_new(&options, &daemon->control);
}

static int daemon_start(Daemon *daemon) {
    const Config *config = daemon->config;
    bool is_volatile = config->storage == STORAGE_VOLATILE;
    uint64_t floor_ns = clock_monotonic_ns();
    SessionEntry *entry;
    /* Plan the memory before we open anything. */
    int r;

    daemon->memory = memory_plan_here(is_volatile ? config->runtime_max_use_bytes : 0);
    r = daemon_start_make_parts(daemon);

    if (r == 0)
        r = daemon_start_sampling(daemon);
    if (r == 0)
        r = daemon_start_collect_environment(daemon);
    if (r == 0)
        r = daemon_start_open_store(daemon);
    if (r == 0)
        r = daemon_start_keep_binaries(daemon);
    if (r == 0)
        r = daemon_begin_sessions(daemon);
    if (r < 0)
        return r;
    for (size_t at = 0; (entry = session_table_next(daemon->sessions, &at));)
        floor_ns = MIN(floor_ns, session_oldest_ns(entry->session));
    r = tracker_begin(daemon->tracker, floor_ns);
    if (r == 0)
        r = daemon_add_sources(daemon);
    return r == 0 ? daemon_start_listen_to_clients(daemon) : r;
}

/* At the end, since the control socket loads libraries for the names of groups. */
static void daemon_start_lock_code(void) {
    uint64_t bytes;
    int r = code_lock(&bytes);

    if (r < 0)
        log_debug("Failed to keep the code in memory, ignoring: %s", strerror(-r));
    else
        log_debug("Keeping %" PRIu64 " KiB of code in memory", bytes >> 10);
}

int daemon_new(const DaemonOptions *options, Config *config, Daemon **ret) {
    _cleanup_(daemon_freep) Daemon *daemon = calloc(1, sizeof(*daemon));
    int r;

    if (!daemon) {
        config_free(config);
        return -ENOMEM;
    }
    daemon->options = *options;
    daemon->config = config;
    daemon->began_real_ns = clock_ns(CLOCK_REALTIME);
    daemon->cpu.at_ns = daemon->cpu_before.at_ns = clock_monotonic_ns();
    daemon->written_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r = daemon->written_fd < 0 ? -errno : loop_new(&daemon->loop);
    if (r == 0)
        r = daemon_start(daemon);
    if (r < 0)
        return r;
    daemon_start_lock_code();
    *ret = TAKE_PTR(daemon);
    return 0;
}

Daemon *daemon_free(Daemon *daemon) {
    bool is_over, is_opened, is_kept;

    if (!daemon)
        return NULL;
    /* Free the control socket first: its calls hold references to the other parts. */
    control_free(daemon->control);
    daemon->options.methods->forget(daemon);
    is_over = worker_end(daemon->housekeeper);
    if (is_over)
        daemon->housekeeper = NULL;
    (void)worker_end(daemon->reader);
    waits_free(daemon->waits);
    if (is_over)
        follower_list_free(daemon->followers);
    vacuum_free(daemon->vacuum);
    /* A thread that hangs on a disk still uses the snapshots, so leak them. */
    if (is_over)
        snapshot_engine_free(daemon->snapshots);
    session_table_free(daemon->sessions, daemon->leaving);
    monitor_free(daemon->monitor);
    daemon->notify = notify_free(daemon->notify);
    process_search_free(daemon->process_search);
    unwinder_free(daemon->unwinder);
    tracker_free(daemon->tracker);
    /* The thread of the tracker asked it what is kept. */
    binaries_free(daemon->binaries, &is_kept);
    group_searches_free(daemon->searches);
    is_opened = worker_end(daemon->opener);
    /* A thread that hangs in the kernel still uses the sampler, so leak it. */
    if (is_opened)
        sampler_free(daemon->sampler);
    if (is_over && is_kept)
        store_free(daemon->store);
    closep(&daemon->written_fd);
    loop_free(daemon->loop);
    pd_environment_free(daemon->environment);
    config_free(daemon->config);
    free(daemon);
    return NULL;
}
