/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A store with the engine of snapshots on it, and a session of 1000 samples a segment and CPU, 1 us
 * apart. */

#include "make-store.h"
#include "store/snapshot/snapshot-private.h"

enum { SAMPLES = 1000 };

typedef struct Scene {
    Place place;
    Loop *loop;
    Worker *housekeeper;
    SnapshotEngine *engine;
    StoreSession *session;
    uint64_t first_ns[8]; /* of the samples of each segment */
    uint64_t sweep;
    bool done;
    SnapshotFailure failure;
    SnapshotInfo info;
    char path[512];
    bool failed;
} Scene;

static inline void scene_done(Scene *s) {
    store_session_close(s->session);
    worker_free(s->housekeeper);
    snapshot_engine_free(s->engine);
    loop_free(s->loop);
    place_done(&s->place);
}

/* Frees the engine after the housekeeper, which may still work for it. */
static inline void end_engine(Scene *s) {
    s->housekeeper = worker_free(s->housekeeper);
    s->engine = snapshot_engine_free(s->engine);
}

static inline int begin_engine(Scene *s) {
    int r = housekeeper_new(s->loop, "profd-house", &s->housekeeper);

    return r == 0 ? snapshot_engine_new(s->place.store, s->loop, s->housekeeper, &s->engine) : r;
}

static inline int scene_init(Scene *s) {
    int r;

    *s = (Scene){};
    r = place_init(&s->place);
    if (r == 0)
        r = place_open(&s->place);
    if (r == 0)
        r = loop_new(&s->loop);
    return r == 0 ? begin_engine(s) : r;
}

/* The outcome of a change. */
typedef struct Changed {
    Loop *loop;
    int error;
} Changed;

static inline void on_changed(void *userdata, int error, uint64_t bytes) {
    Changed *changed = userdata;

    (void)bytes;
    changed->error = error;
    loop_stop(changed->loop);
}

static inline int wait_changed(Scene *s, Changed *changed, int begun) {
    int r = begun < 0 ? begun : loop_run(s->loop);

    return r < 0 ? r : changed->error;
}

static inline void do_nothing(void *userdata) {
    (void)userdata;
}

static inline void stop_loop(void *userdata) {
    loop_stop(userdata);
}

/* Waits until the housekeeper has finished its jobs. */
static inline int wait_housekeeper(Scene *s) {
    const WorkerJob job = {.run = do_nothing, .done = stop_loop, .userdata = s->loop};
    int r = housekeeper_add(s->housekeeper, &job, true);

    return r == 0 ? loop_run(s->loop) : r;
}

static inline int remove_snapshot(Scene *s, const char *name) {
    Changed changed = {.loop = s->loop};
    const SnapshotAnswer answer = {.on_done = on_changed, .userdata = &changed};

    return wait_changed(s, &changed, snapshot_remove(s->engine, name, &answer));
}

static inline int pin_snapshot(Scene *s, const char *name) {
    Changed changed = {.loop = s->loop};
    const SnapshotAnswer answer = {.on_done = on_changed, .userdata = &changed};

    return wait_changed(s, &changed, snapshot_set_pinned(s->engine, name, true, &answer));
}

static inline int scene_record(Scene *s, Way way, unsigned segments) {
    SessionConfig config = store_session("default", way.layout, way.level);
    int r = store_session_new(s->place.store, &config, false, &s->session);

    for (unsigned i = 0; r == 0 && i < segments; i++) {
        r = begin_segment(&s->place, s->session);
        s->first_ns[i] = clock_anchor_now().monotonic_ns;
        if (r == 0)
            r = write_samples(s->session, 0, s->first_ns[i], SAMPLES);
        if (r == 0)
            r = write_samples(s->session, 1, s->first_ns[i], SAMPLES);
        if (r == 0)
            r = end_sweep(s->session, ++s->sweep);
        /* The next segment begins later. */
        usleep(2000);
    }
    return r == 0 && !wait_written(s->session, s->sweep) ? -ETIMEDOUT : r;
}

static inline void on_done(void *userdata, const SnapshotFailure *failure,
                           const SnapshotInfo *info) {
    Scene *s = userdata;

    s->done = true;
    s->failed = failure != NULL;
    if (failure)
        s->failure = *failure;
    if (info) {
        s->info = *info;
        snprintf(s->path, sizeof(s->path), "%s", info->path);
    }
    loop_stop(s->loop);
}

static inline SnapshotRequest request(const char *name) {
    return (SnapshotRequest){.session = "default",
                             .by_monotonic = true,
                             .name = name,
                             .zstd_level = 3,
                             .privileged = true};
}

static inline int make(Scene *s, const SnapshotRequest *request) {
    const SnapshotCallbacks callbacks = {.on_done = on_done, .userdata = s};
    Snapshot *snapshot;
    int r = snapshot_begin(s->engine, request, &callbacks, &snapshot);

    s->done = s->failed = false;
    return r == 0 ? loop_run(s->loop) : r;
}

/* The number of names in the folder of snapshots, including hidden ones. */
static inline unsigned count_left(const Scene *s) {
    struct dirent **names;
    char path[160];
    unsigned n_left = 0;
    int n;

    snprintf(path, sizeof(path), "%s/snapshots", s->place.path);
    n = scandir(path, &names, NULL, NULL);
    for (int i = 0; i < n; i++) {
        n_left += strcmp(names[i]->d_name, ".") != 0 && strcmp(names[i]->d_name, "..") != 0;
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return n_left;
}
