/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "store/snapshot/snapshot-private.h"
#include "util/log.h"

/*
 * The folder `snapshots` may be deleted, or replaced by a copy of it, while profd runs. A worker
 * notices it when it begins a job, and opens the folder that is there now. What is listed then may
 * be in that folder or not, so nothing may be deleted from it by name: the housekeeper reads the
 * folder, and the main thread takes over what was found. Until then, what was listed stays listed
 * and keeps its name, but cannot be changed.
 */

/* A folder that is being read. */
typedef struct Listing {
    SnapshotEngine *engine;
    unsigned generation;
    KeptList found;
    int result;
} Listing;

static int snapshot_folder_reopen(SnapshotEngine *engine) {
    _cleanup_close_ int fd = -1;
    int r = store_reopen_snapshots(engine->store, engine->folder);

    if (r < 0)
        return r == -EALREADY ? 0 : r;
    fd = r;
    if (dup3(fd, engine->folder, O_CLOEXEC) < 0)
        return -errno;
    atomic_fetch_add(&engine->generation, 1);
    return 1;
}

int snapshot_folder_regain(SnapshotEngine *engine, unsigned *ret_generation) {
    uint64_t one = 1;
    int r;

    pthread_mutex_lock(&engine->regain);
    r = snapshot_folder_reopen(engine);
    if (r >= 0)
        *ret_generation = atomic_load(&engine->generation);
    pthread_mutex_unlock(&engine->regain);
    if (r > 0)
        (void)!write(engine->event, &one, sizeof(one));
    return MIN(r, 0);
}

static void snapshot_folder_read(void *userdata) {
    Listing *listing = userdata;

    listing->result = snapshot_list_load(listing->engine, false, &listing->found);
}

/* Takes ownership. A name that is not lost belongs to a snapshot that was finished after the folder
 * was replaced, or to a job. */
static void snapshot_folder_take(SnapshotEngine *engine, unsigned generation, Kept *found) {
    Kept *old = snapshot_list_find(engine, found->info.name);

    found->generation = generation;
    if (old && old->generation < generation) {
        /* Changes of it came before the listing, and later ones are refused. */
        assert(!old->changes);
        if (!old->info.transient) {
            found->fate = old->fate;
            found->seen_boot_ns = old->seen_boot_ns;
            /* It may have been pinned after it was copied. */
            found->info.pinned |= old->info.pinned;
        }
        TAILQ_REMOVE(&engine->kept, old, list);
        free(old);
    }
    if (snapshot_name_is_taken(engine, found->info.name))
        free(found);
    else
        snapshot_list_add(&engine->kept, found);
}

static unsigned snapshot_folder_forget_lost(SnapshotEngine *engine, unsigned generation) {
    Kept *kept, *next;
    unsigned n = 0;

    for (kept = TAILQ_FIRST(&engine->kept); kept; kept = next) {
        next = TAILQ_NEXT(kept, list);
        if (kept->generation >= generation)
            continue;
        assert(!kept->changes);
        n += !kept->info.transient;
        TAILQ_REMOVE(&engine->kept, kept, list);
        free(kept);
    }
    return n;
}

/* False: the folder was replaced again while it was read. */
static bool snapshot_folder_take_over(Listing *listing) {
    SnapshotEngine *engine = listing->engine;
    unsigned n_lost;

    if (listing->generation != atomic_load(&engine->generation))
        return false;
    pthread_mutex_lock(&engine->mutex);
    for (Kept *found; (found = TAILQ_FIRST(&listing->found));) {
        TAILQ_REMOVE(&listing->found, found, list);
        snapshot_folder_take(engine, listing->generation, found);
    }
    n_lost = snapshot_folder_forget_lost(engine, listing->generation);
    snapshot_list_account(engine);
    pthread_mutex_unlock(&engine->mutex);
    engine->listed = listing->generation;
    log_notice("Listed the snapshots of store '%s' again, because their folder was replaced; %u of "
               "those before are not in it",
               engine->store->path, n_lost);
    return true;
}

static void snapshot_folder_done(void *userdata) {
    Listing *listing = userdata;
    SnapshotEngine *engine = listing->engine;

    engine->is_listing = false;
    if (listing->result < 0 && listing->result != -ECANCELED)
        log_warning(listing->result,
                    "Failed to list the snapshots of store '%s' whose folder was replaced, trying "
                    "again later: %m",
                    engine->store->path);
    else if (listing->result == 0 && snapshot_folder_take_over(listing))
        snapshot_remove_doomed(engine);
    else if (listing->result == 0)
        snapshot_folder_list_again(engine);
    snapshot_list_free(&listing->found);
    free(listing);
}

/* A job may also end with a snapshot that lies in the folder before. */
static bool snapshot_folder_has_lost(SnapshotEngine *engine) {
    const Kept *k;

    TAILQ_FOREACH(k, &engine->kept, list)
        if (snapshot_is_lost(engine, k))
            break;
    return k || engine->listed != atomic_load(&engine->generation);
}

void snapshot_folder_list_again(SnapshotEngine *engine) {
    Listing *listing;

    if (engine->is_listing || !snapshot_folder_has_lost(engine))
        return;
    listing = calloc(1, sizeof(*listing));
    if (!listing)
        return;
    *listing = (Listing){
        .engine = engine, .generation = atomic_load(&engine->generation), .result = -ECANCELED};
    TAILQ_INIT(&listing->found);
    if (housekeeper_add(engine->housekeeper,
                        &(WorkerJob){.run = snapshot_folder_read,
                                     .done = snapshot_folder_done,
                                     .userdata = listing},
                        true) == 0)
        engine->is_listing = true;
    else
        free(listing);
}
