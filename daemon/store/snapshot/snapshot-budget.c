/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>

#include "store/snapshot/snapshot-private.h"

/* How much of the store snapshots take, and how much each user may have. */

/*
 * Each snapshot of an unprivileged user counts as at least this much: a tiny one takes little
 * space, but it is listed and checked for each new name. A small limit must still hold some
 * snapshots.
 */
static uint64_t snapshot_budget_least_weight(uint64_t limit) {
    return MIN((uint64_t)SNAPSHOT_LEAST_BYTES, limit / SNAPSHOT_LEAST_PART);
}

typedef struct Sums {
    uint64_t all, unprivileged, of_uid;
} Sums;

static void snapshot_budget_add(Sums *sums, const Kept *kept, uint64_t bytes, uint32_t uid,
                                uint64_t least) {
    uint64_t weight = MAX(bytes, least);

    sums->all += bytes;
    sums->unprivileged += kept->privileged ? 0 : weight;
    sums->of_uid += !kept->privileged && kept->info.uid == uid ? weight : 0;
}

/* A job that waits for its turn takes no space yet. */
static Sums snapshot_budget_sum_up(const SnapshotEngine *engine, const Snapshot *without,
                                   uint32_t uid, uint64_t least) {
    const Snapshot *job;
    const Kept *k;
    Sums sums = {};

    TAILQ_FOREACH(k, &engine->kept, list)
        snapshot_budget_add(&sums, k, k->info.bytes, uid, least);
    LIST_FOREACH(job, &engine->jobs, list)
        if (job != without && job->kept && job->state != JOB_WAITS)
            snapshot_budget_add(&sums, job->kept, job->bytes, uid, least);
    return sums;
}

static uint64_t snapshot_budget_sum_bytes(const SnapshotEngine *engine) {
    return snapshot_budget_sum_up(engine, NULL, 0, 0).all;
}

/* Snapshots may never take so much that nothing is left for recordings. */
static uint64_t snapshot_budget_limit_of(Store *store) {
    uint64_t limit;

    pthread_mutex_lock(&store->mutex);
    limit = MIN(store->snapshot_max_bytes, store_limit_bytes(store) / 2);
    pthread_mutex_unlock(&store->mutex);
    return limit;
}

int snapshot_budget(const SnapshotEngine *engine, const Snapshot *job, uint64_t bytes,
                    SnapshotFailure *ret_why) {
    const Kept *kept = job->kept;
    uint64_t all = snapshot_budget_limit_of(engine->store), limit = all,
             least = snapshot_budget_least_weight(all);
    Sums sums = snapshot_budget_sum_up(engine, job, kept->info.uid, least);
    uint64_t need = sums.all + bytes, weight = MAX(bytes, least);

    if (!kept->privileged && sums.unprivileged + weight > all / 4 * 3) {
        limit = all / 4 * 3;
        need = sums.unprivileged + weight;
    }
    if (!kept->privileged && sums.of_uid + weight > all / 4) {
        limit = all / 4;
        need = sums.of_uid + weight;
    }
    if (need <= limit)
        return 0;
    *ret_why = (SnapshotFailure){
        .error = SNAPSHOT_BUDGET, .code = -EDQUOT, .limit_bytes = limit, .need_bytes = need};
    snprintf(ret_why->text, sizeof(ret_why->text),
             "All snapshots together would exceed SnapshotMaxUse=; remove some, or raise it");
    return -EDQUOT;
}

void snapshot_list_account(SnapshotEngine *engine) {
    uint64_t all = snapshot_budget_sum_bytes(engine), oldest_ns = UINT64_MAX;
    const Kept *k;

    TAILQ_FOREACH(k, &engine->kept, list)
        oldest_ns = k->info.since_ns > 0 ? MIN(oldest_ns, k->info.since_ns) : oldest_ns;
    pthread_mutex_lock(&engine->store->mutex);
    engine->store->snapshot_bytes = all;
    engine->store->snapshot_oldest_real_ns = oldest_ns == UINT64_MAX ? 0 : oldest_ns;
    pthread_mutex_unlock(&engine->store->mutex);
}

SnapshotUse snapshot_use(SnapshotEngine *engine) {
    SnapshotUse use = {.limit_bytes = snapshot_budget_limit_of(engine->store)};
    const Kept *k;

    pthread_mutex_lock(&engine->mutex);
    use.used_bytes = snapshot_budget_sum_bytes(engine);
    pthread_mutex_unlock(&engine->mutex);
    TAILQ_FOREACH(k, &engine->kept, list)
        use.n += !k->info.transient;
    return use;
}
