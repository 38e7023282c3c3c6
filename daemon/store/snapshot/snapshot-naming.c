/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "store/snapshot/snapshot-private.h"
#include "util/clock.h"

/* Chooses a name that no other snapshot has, whether finished or in progress. */

/* Checks the snapshots that the engine knows; the worker checks for other files in the folder. */
bool snapshot_name_is_taken(SnapshotEngine *engine, const char *name) {
    const Snapshot *job;

    LIST_FOREACH(job, &engine->jobs, list)
        if (job->kept && strcmp(job->kept->info.name, name) == 0)
            return true;
    return snapshot_list_find(engine, name) != NULL;
}

/* The UTC time, with a number appended from the second try on. */
static void snapshot_print_name(uint64_t real_ns, unsigned number, char ret[SNAPSHOT_NAME_MAX]) {
    time_t seconds = (time_t)(real_ns / NS_PER_SECOND);
    char stamp[32] = "";
    struct tm tm;

    if (gmtime_r(&seconds, &tm))
        strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm);
    if (number < 2)
        snprintf(ret, SNAPSHOT_NAME_MAX, "%s", stamp);
    else
        snprintf(ret, SNAPSHOT_NAME_MAX, "%s-%u", stamp, number);
}

/* Another snapshot may already have such a name. */
static void snapshot_make_transient_name(SnapshotEngine *engine, char ret[SNAPSHOT_NAME_MAX]) {
    do
        snprintf(ret, SNAPSHOT_NAME_MAX, "transient-%" PRIu64, ++engine->counter);
    while (snapshot_name_is_taken(engine, ret));
}

/* Call it with the mutex held: chooses a name that no other snapshot has, starting after the last
 * number tried. */
void snapshot_make_name(SnapshotEngine *engine, const SnapshotInfo *info, unsigned *number,
                        char ret[SNAPSHOT_NAME_MAX]) {
    if (info->transient)
        snapshot_make_transient_name(engine, ret);
    else
        do
            snapshot_print_name(info->created_ns, ++*number, ret);
        while (snapshot_name_is_taken(engine, ret));
}

void snapshot_next_name(Snapshot *job, unsigned *number) {
    char name[SNAPSHOT_NAME_MAX];

    pthread_mutex_lock(&job->engine->mutex);
    snapshot_make_name(job->engine, &job->kept->info, number, name);
    memcpy(job->kept->info.name, name, sizeof(name));
    pthread_mutex_unlock(&job->engine->mutex);
}
