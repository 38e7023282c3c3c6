/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "store/disk/dirfd.h"
#include "store/disk/disk.h"
#include "store/snapshot/snapshot-private.h"
#include "util/log.h"

/*
 * The housekeeper pins and removes finished snapshots, while the main thread owns the list. The
 * main thread begins a change with a copy of what the disk shall hold, and updates the list when
 * the change is done. Only one change per snapshot runs at a time. A snapshot that must go anyway
 * (too old, or its client has disconnected) is marked and no longer found until the housekeeper has
 * room for the removal.
 */

typedef struct Change {
    SnapshotEngine *engine;
    bool removes;
    Kept kept; /* as it shall be, or as it was */
    int result;
    SnapshotAnswer answer;
} Change;

int snapshot_delete(SnapshotEngine *engine, const Kept *kept) {
    char text[SNAPSHOT_FILE_MAX];
    int r;

    disk_touch(__func__);
    snapshot_data_name(&kept->info, text);
    r = dirfd_remove(engine->folder, text);
    if (r < 0 && r != -ENOENT)
        return r;
    snapshot_manifest_name(kept->info.name, text);
    if (!kept->info.transient)
        (void)unlinkat(engine->folder, text, 0);
    return 0;
}

static int snapshot_change_write_kept(SnapshotEngine *engine, const Kept *kept) {
    _cleanup_close_ int fd = -1;
    char text[SNAPSHOT_FILE_MAX];
    struct stat st;
    int r = snapshot_write_manifest(engine->folder, kept);

    if (r < 0)
        return r;
    snapshot_manifest_name(kept->info.name, text);
    fd = dirfd_open_file(engine->folder, text, &st);
    seal_give(&engine->store->seal, fd, text, kept->info.sensitive);
    return 0;
}

static void snapshot_change_work(void *userdata) {
    Change *change = userdata;

    change->result = (change->removes ? snapshot_delete
                                      : snapshot_change_write_kept)(change->engine, &change->kept);
}

static void snapshot_change_take_out(SnapshotEngine *engine, Kept *kept) {
    pthread_mutex_lock(&engine->mutex);
    TAILQ_REMOVE(&engine->kept, kept, list);
    snapshot_list_account(engine);
    pthread_mutex_unlock(&engine->mutex);
    free(kept);
}

static void snapshot_change_log_expiry(const char *name, int error) {
    if (error < 0)
        log_warning(error,
                    "Failed to remove snapshot '%s' that is older than "
                    "SnapshotMaxRetentionSec=: %m",
                    name);
    else
        log_struct(LOG_LEVEL_INFO, 0,
                   LOG_FIELDS({"PROFD_EVENT", "snapshot-removed"}, {"PROFD_SNAPSHOT", name}),
                   "Removed snapshot '%s', which is older than SnapshotMaxRetentionSec=", name);
}

static void snapshot_change_done(void *userdata) {
    Change *change = userdata;
    SnapshotEngine *engine = change->engine;
    Kept *kept = snapshot_list_find(engine, change->kept.info.name);

    kept->changes = false;
    if (change->removes && kept->fate == FATE_EXPIRED && change->result != -ECANCELED)
        snapshot_change_log_expiry(kept->info.name, change->result);
    /* A snapshot that could not be removed stays. */
    if (change->removes && change->result < 0 && change->result != -ECANCELED)
        kept->fate = FATE_STAYS;
    if (change->removes && change->result == 0)
        snapshot_change_take_out(engine, kept);
    else if (change->result == 0)
        kept->info.pinned = change->kept.info.pinned;
    if (change->answer.on_done)
        change->answer.on_done(change->answer.userdata, change->result, change->kept.info.bytes);
    if (change->result != -ECANCELED)
        snapshot_remove_doomed(engine);
    free(change);
}

static int snapshot_change_begin(SnapshotEngine *engine, Kept *kept, bool removes, bool pinned,
                                 const SnapshotAnswer *answer) {
    Change *change;
    int r;

    if (kept->changes || snapshot_is_lost(engine, kept))
        return -EBUSY;
    change = calloc(1, sizeof(*change));
    if (!change)
        return -ENOMEM;
    *change = (Change){.engine = engine,
                       .removes = removes,
                       .kept = *kept,
                       .result = -ECANCELED,
                       .answer = *answer};
    change->kept.info.pinned = pinned;
    r = housekeeper_add(
        engine->housekeeper,
        &(WorkerJob){.run = snapshot_change_work, .done = snapshot_change_done, .userdata = change},
        answer->privileged);
    if (r < 0)
        free(change);
    else
        kept->changes = true;
    return r;
}

static Kept *snapshot_change_find_visible(SnapshotEngine *engine, const char *name) {
    Kept *kept = snapshot_list_find(engine, name);

    return kept && kept->fate == FATE_STAYS ? kept : NULL;
}

int snapshot_remove(SnapshotEngine *engine, const char *name, const SnapshotAnswer *answer) {
    Kept *kept = snapshot_change_find_visible(engine, name);

    return kept ? snapshot_change_begin(engine, kept, true, kept->info.pinned, answer) : -ENOENT;
}

int snapshot_set_pinned(SnapshotEngine *engine, const char *name, bool pinned,
                        const SnapshotAnswer *answer) {
    Kept *kept = snapshot_change_find_visible(engine, name);

    return kept && !kept->info.transient
               ? snapshot_change_begin(engine, kept, false, pinned, answer)
               : -ENOENT;
}

void snapshot_remove_doomed(SnapshotEngine *engine) {
    const SnapshotAnswer nobody = {.privileged = true};
    Kept *k;

    /* While the engine ends there is no housekeeper, and freeing the engine removes them. */
    if (engine->ending)
        return;
    TAILQ_FOREACH(k, &engine->kept, list)
        if (k->fate != FATE_STAYS && !k->changes && !snapshot_is_lost(engine, k) &&
            snapshot_change_begin(engine, k, true, k->info.pinned, &nobody) < 0)
            return;
}

void snapshot_doom(SnapshotEngine *engine, const char *name) {
    Kept *kept = snapshot_list_find(engine, name);

    if (!kept)
        return;
    kept->fate = FATE_UNWANTED;
    snapshot_remove_doomed(engine);
}

/* Like retention of segments: an untrusted clock deletes nothing, see also snapshot-age.c. */
void snapshot_expire(SnapshotEngine *engine) {
    Store *store = engine->store;
    ClockAnchor now = store->now();
    uint64_t retention, real;
    Kept *k;

    pthread_mutex_lock(&store->mutex);
    retention = store->snapshot_retention_ns;
    real = store_believed_real_ns(store, &now);
    pthread_mutex_unlock(&store->mutex);
    if (retention == 0 || !store->synchronised())
        return;
    TAILQ_FOREACH(k, &engine->kept, list)
        if (!k->info.pinned && !k->info.transient && !k->changes && k->fate == FATE_STAYS &&
            snapshot_age_ns(store, k, &now, real) > retention)
            k->fate = FATE_EXPIRED;
    snapshot_remove_doomed(engine);
}
