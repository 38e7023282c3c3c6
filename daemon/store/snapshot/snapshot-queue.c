/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "store/disk/dirfd.h"
#include "store/snapshot/snapshot-private.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/thread.h"

/*
 * The queue between the main thread and the workers. Snapshots are ordered so that those of one
 * user follow each other and those of different users alternate: a user who requests many waits
 * only for his own. A worker wakes the loop, and the callbacks run there.
 */

enum { EXPIRE_SEC = 600 };

static Snapshot *snapshot_queue_job_free(Snapshot *job) {
    if (!job)
        return NULL;
    for (size_t i = 0; i < job->filter.n_comms; i++)
        free((char *)job->filter.comms[i]);
    for (size_t i = 0; i < job->filter.n_cgroups; i++)
        free((char *)job->filter.cgroups[i]);
    for (size_t i = 0; i < job->filter.n_units; i++)
        free((char *)job->filter.units[i]);
    free((void *)job->filter.comms);
    free((void *)job->filter.cgroups);
    free((void *)job->filter.units);
    free((void *)job->filter.pids);
    free((void *)job->filter.tids);
    free(job->kept);
    free(job);
    return NULL;
}
DEFINE_CLEANUP(Snapshot *, snapshot_queue_job_free);

static Snapshot *snapshot_queue_next_job(SnapshotEngine *engine) {
    Snapshot *found = NULL, *job;

    LIST_FOREACH(job, &engine->jobs, list)
        if (job->state == JOB_WAITS && (!found || job->order < found->order))
            found = job;
    return found;
}

/* Waits for the first queued job; NULL: the engine ends. */
static Snapshot *snapshot_queue_wait_for_job(SnapshotEngine *engine) {
    Snapshot *job = NULL;

    pthread_mutex_lock(&engine->mutex);
    while (!engine->ending && !(job = snapshot_queue_next_job(engine)))
        pthread_cond_wait(&engine->wake, &engine->mutex);
    if (engine->ending)
        job = NULL;
    if (job) {
        job->state = JOB_RUNS;
        engine->clock = MAX(engine->clock, job->order >> 32);
    }
    pthread_mutex_unlock(&engine->mutex);
    return job;
}

static void *snapshot_queue_work(void *userdata) {
    SnapshotEngine *engine = userdata;
    Snapshot *job;
    uint64_t one = 1;

    while ((job = snapshot_queue_wait_for_job(engine))) {
        snapshot_job_run(job);
        pthread_mutex_lock(&engine->mutex);
        job->state = JOB_ENDED;
        pthread_mutex_unlock(&engine->mutex);
        (void)!write(engine->event, &one, sizeof(one));
    }
    return NULL;
}

static int snapshot_queue_start_workers(SnapshotEngine *engine) {
    const ThreadOptions options = {.name = "profd-snapshot", .nice = THREAD_NICE_LAST};
    int r = 0;

    for (; r == 0 && engine->n_workers < SNAPSHOT_WORKERS; engine->n_workers += r == 0)
        r = thread_start(&options, snapshot_queue_work, engine,
                         &engine->workers[engine->n_workers]);
    return r;
}

/* Takes a job that ended out of the list and adds its result to the finished snapshots. */
static Snapshot *snapshot_queue_take_ended(SnapshotEngine *engine) {
    Snapshot *job;

    pthread_mutex_lock(&engine->mutex);
    LIST_FOREACH(job, &engine->jobs, list)
        if (job->state == JOB_ENDED)
            break;
    if (job) {
        LIST_REMOVE(job, list);
        if (!job->failed)
            snapshot_list_add(&engine->kept, job->kept);
        snapshot_list_account(engine);
    }
    pthread_mutex_unlock(&engine->mutex);
    return job;
}

static void snapshot_queue_deliver(SnapshotEngine *engine, Snapshot *job) {
    const SnapshotCallbacks *callbacks = &job->callbacks;
    char name[SNAPSHOT_NAME_MAX];
    SnapshotInfo info;

    memcpy(name, job->kept->info.name, sizeof(name));
    if (!job->failed)
        job->kept = NULL;
    if (job->abandoned && !job->failed)
        snapshot_doom(engine, name);
    if (job->abandoned || !callbacks->on_done)
        return;
    if (job->failed)
        callbacks->on_done(callbacks->userdata, &job->failure, NULL);
    else if (snapshot_find(engine, name, &info) == 0)
        callbacks->on_done(callbacks->userdata, NULL, &info);
}

/* Callbacks may begin or cancel other jobs, so search again for each. */
static Snapshot *snapshot_queue_take_progressed(SnapshotEngine *engine) {
    Snapshot *job;

    pthread_mutex_lock(&engine->mutex);
    LIST_FOREACH(job, &engine->jobs, list)
        if (job->state == JOB_RUNS && atomic_exchange(&job->progressed, false) && !job->abandoned &&
            job->callbacks.on_progress)
            break;
    pthread_mutex_unlock(&engine->mutex);
    return job;
}

static int snapshot_queue_on_event(void *userdata) {
    SnapshotEngine *engine = userdata;
    Snapshot *job;
    uint64_t n;

    (void)!read(engine->event, &n, sizeof(n));
    while ((job = snapshot_queue_take_progressed(engine)))
        job->callbacks.on_progress(job->callbacks.userdata, atomic_load(&job->progress.done_bytes),
                                   atomic_load(&job->progress.total_bytes));
    while ((job = snapshot_queue_take_ended(engine))) {
        snapshot_queue_deliver(engine, job);
        snapshot_queue_job_free(job);
    }
    snapshot_folder_list_again(engine);
    return 0;
}

static int snapshot_queue_on_timer(void *userdata) {
    snapshot_folder_list_again(userdata);
    snapshot_expire(userdata);
    return 0;
}

static int snapshot_queue_open_engine(SnapshotEngine *engine) {
    int r = dirfd_open_folder(engine->store->root, "snapshots", &engine->folder);

    if (r == 0)
        r = snapshot_list_load(engine, true, &engine->kept);
    if (r < 0)
        return r;
    snapshot_list_account(engine);
    engine->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (engine->event < 0)
        return -errno;
    r = loop_add_readable(engine->loop, engine->event, snapshot_queue_on_event, engine,
                          &engine->wakeup);
    if (r == 0)
        r = loop_add_timer(engine->loop, EXPIRE_SEC * NS_PER_SECOND, snapshot_queue_on_timer,
                           engine, &engine->timer);
    return r == 0 ? snapshot_queue_start_workers(engine) : r;
}

int snapshot_engine_new(Store *store, Loop *loop, Worker *housekeeper, SnapshotEngine **ret) {
    SnapshotEngine *engine = calloc(1, sizeof(*engine));
    int r;

    if (!engine)
        return -ENOMEM;
    engine->store = store;
    engine->loop = loop;
    engine->housekeeper = housekeeper;
    engine->folder = engine->event = -1;
    TAILQ_INIT(&engine->kept);
    pthread_mutex_init(&engine->mutex, NULL);
    pthread_mutex_init(&engine->regain, NULL);
    pthread_cond_init(&engine->wake, NULL);
    r = snapshot_queue_open_engine(engine);
    if (r < 0) {
        snapshot_engine_free(engine);
        return log_error(r, "Failed to open the snapshots of store '%s': %m", store->path);
    }
    snapshot_expire(engine);
    *ret = engine;
    return 0;
}

static void snapshot_queue_end_workers(SnapshotEngine *engine) {
    Snapshot *job;

    pthread_mutex_lock(&engine->mutex);
    engine->ending = true;
    LIST_FOREACH(job, &engine->jobs, list) {
        job->abandoned = true;
        atomic_store(&job->progress.cancelled, true);
    }
    pthread_cond_broadcast(&engine->wake);
    pthread_mutex_unlock(&engine->mutex);
    for (size_t i = 0; i < engine->n_workers; i++)
        (void)pthread_join(engine->workers[i], NULL);
}

SnapshotEngine *snapshot_engine_free(SnapshotEngine *engine) {
    if (!engine)
        return NULL;
    snapshot_queue_end_workers(engine);
    for (Snapshot *job; (job = LIST_FIRST(&engine->jobs));) {
        if (job->state == JOB_ENDED) {
            job = snapshot_queue_take_ended(engine);
            snapshot_queue_deliver(engine, job);
        } else {
            LIST_REMOVE(job, list);
        }
        snapshot_queue_job_free(job);
    }
    loop_source_free(engine->wakeup);
    loop_source_free(engine->timer);
    for (Kept *kept; engine->folder >= 0 && (kept = TAILQ_FIRST(&engine->kept));) {
        TAILQ_REMOVE(&engine->kept, kept, list);
        /* The housekeeper has gone, and its changes with it. */
        assert(!kept->changes);
        if (kept->info.transient || kept->fate == FATE_UNWANTED)
            (void)snapshot_delete(engine, kept);
        free(kept);
    }
    snapshot_list_free(&engine->kept);
    closep(&engine->folder);
    closep(&engine->event);
    pthread_mutex_destroy(&engine->mutex);
    pthread_mutex_destroy(&engine->regain);
    pthread_cond_destroy(&engine->wake);
    free(engine);
    return NULL;
}

static int snapshot_queue_copy_texts(const char *const *from, size_t n, const char *const **ret,
                                     size_t *ret_n) {
    char **texts = calloc(n + 1, sizeof(*texts));

    if (!texts)
        return -ENOMEM;
    *ret = (const char *const *)texts;
    for (; *ret_n < n; (*ret_n)++) {
        texts[*ret_n] = strdup(from[*ret_n]);
        if (!texts[*ret_n])
            return -ENOMEM;
    }
    return 0;
}

static int snapshot_queue_copy_ids(const uint32_t *from, size_t n, const uint32_t **ret,
                                   size_t *ret_n) {
    uint32_t *ids = calloc(n + 1, sizeof(*ids));

    if (!ids)
        return -ENOMEM;
    if (n > 0)
        memcpy(ids, from, n * sizeof(*ids));
    *ret = ids;
    *ret_n = n;
    return 0;
}

static int snapshot_queue_copy_filter(SnapshotFilter *to, const SnapshotFilter *from) {
    int r = snapshot_queue_copy_ids(from->pids, from->n_pids, &to->pids, &to->n_pids);

    if (r == 0)
        r = snapshot_queue_copy_ids(from->tids, from->n_tids, &to->tids, &to->n_tids);
    to->by_cpu = from->by_cpu;
    memcpy(to->cpus, from->cpus, sizeof(to->cpus));
    if (r == 0)
        r = snapshot_queue_copy_texts(from->comms, from->n_comms, &to->comms, &to->n_comms);
    if (r == 0)
        r = snapshot_queue_copy_texts(from->cgroups, from->n_cgroups, &to->cgroups, &to->n_cgroups);
    return r == 0 ? snapshot_queue_copy_texts(from->units, from->n_units, &to->units, &to->n_units)
                  : r;
}

static int snapshot_queue_set_window(WindowQuery *query, const SnapshotRequest *request) {
    uint64_t now = clock_monotonic_ns();

    query->by_monotonic = request->by_monotonic || request->last_ns > 0;
    query->since_ns = request->since_ns;
    query->until_ns = request->until_ns;
    query->asked_ns = request->asked_ns;
    if (request->last_ns > 0)
        query->since_ns = now > request->last_ns ? now - request->last_ns : 1;
    if (query->until_ns > 0 && query->until_ns <= query->since_ns)
        return -EINVAL;
    return snprintf(query->session, sizeof(query->session), "%s", request->session) <
                   (int)sizeof(query->session)
               ? 0
               : -EINVAL;
}

static bool snapshot_queue_is_named(const SnapshotRequest *request) {
    return request->name && *request->name;
}

static int snapshot_queue_fill_info(SnapshotEngine *engine, const SnapshotRequest *request,
                                    Kept *kept) {
    const Store *store = engine->store;
    const ClockAnchor now = store->now();
    SnapshotInfo *info = &kept->info;
    unsigned number = 0;

    *info = (SnapshotInfo){.layout = request->layout,
                           .pinned = request->pin,
                           .transient = request->transient,
                           .uid = request->uid,
                           .created_ns = now.real_ns};
    kept->privileged = request->privileged;
    kept->unsynchronised = !store->synchronised();
    kept->created_boot_ns = kept->seen_boot_ns = now.boot_ns;
    snprintf(kept->boot, sizeof(kept->boot), "%s", store->boot);
    snprintf(info->session, sizeof(info->session), "%s", request->session);
    snprintf(info->reason, sizeof(info->reason), "%s", request->reason ? request->reason : "");
    if (request->transient || !snapshot_queue_is_named(request))
        snapshot_make_name(engine, info, &number, info->name);
    else if (!snapshot_name_is_valid(request->name))
        return -EINVAL;
    else
        snprintf(info->name, sizeof(info->name), "%s", request->name);
    return snapshot_name_is_taken(engine, info->name) ? -EEXIST : 0;
}

/* Call it with the mutex held. */
static int snapshot_queue_enqueue(SnapshotEngine *engine, Snapshot *job) {
    unsigned waiting = 0, of_uid = 0;
    uint64_t turn = engine->clock;
    const Snapshot *other;

    LIST_FOREACH(other, &engine->jobs, list) {
        bool same = other->kept && other->kept->info.uid == job->kept->info.uid;

        waiting += other->state == JOB_WAITS;
        of_uid += same && other->state == JOB_WAITS;
        turn = same ? MAX(turn, other->order >> 32) : turn;
    }
    if (waiting >= SNAPSHOT_WAITING_MAX ||
        (!job->kept->privileged && of_uid >= SNAPSHOT_WAITING_UID_MAX))
        return -EBUSY;
    job->order = (turn + 1) << 32 | (uint32_t)++engine->counter;
    LIST_INSERT_HEAD(&engine->jobs, job, list);
    pthread_cond_signal(&engine->wake);
    return 0;
}

int snapshot_begin(SnapshotEngine *engine, const SnapshotRequest *request,
                   const SnapshotCallbacks *callbacks, Snapshot **ret) {
    _cleanup_(snapshot_queue_job_freep) Snapshot *job = calloc(1, sizeof(*job));
    int r;

    if (!job || !(job->kept = calloc(1, sizeof(*job->kept))))
        return -ENOMEM;
    job->engine = engine;
    job->zstd_level = request->zstd_level;
    job->keep_frames = request->keep_frames && request->zstd_level > 0;
    job->callbacks = *callbacks;
    job->chooses_name = request->transient || !snapshot_queue_is_named(request);
    r = snapshot_queue_set_window(&job->query, request);
    if (r == 0)
        r = snapshot_queue_copy_filter(&job->filter, &request->filter);
    if (r < 0)
        return r;
    pthread_mutex_lock(&engine->mutex);
    r = snapshot_queue_fill_info(engine, request, job->kept);
    if (r == 0)
        r = snapshot_queue_enqueue(engine, job);
    pthread_mutex_unlock(&engine->mutex);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(job);
    return 0;
}

Snapshot *snapshot_cancel(Snapshot *job) {
    SnapshotEngine *engine;
    bool waits;

    if (!job)
        return NULL;
    engine = job->engine;
    pthread_mutex_lock(&engine->mutex);
    atomic_store(&job->progress.cancelled, true);
    job->abandoned = true;
    waits = job->state == JOB_WAITS;
    if (waits)
        LIST_REMOVE(job, list);
    pthread_mutex_unlock(&engine->mutex);
    return waits ? snapshot_queue_job_free(job) : NULL;
}
