/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "store/snapshot/snapshot-private.h"

/*
 * How old a snapshot is, by a clock that nobody can have set meanwhile: within this boot
 * CLOCK_BOOTTIME, and after it the wall clock, if that was synchronised when the snapshot was made.
 * The age of any other is not known: it is counted from when this daemon first listed the snapshot,
 * so each restart in another boot keeps it longer, and none deletes it early.
 */

uint64_t snapshot_age_ns(const Store *store, const Kept *kept, const ClockAnchor *now,
                         uint64_t real_ns) {
    bool this_boot =
        store->boot[0] && strcmp(kept->boot, store->boot) == 0 && kept->created_boot_ns > 0;
    uint64_t from_ns = this_boot ? kept->created_boot_ns : kept->seen_boot_ns,
             now_ns = now->boot_ns;

    if (!this_boot && !kept->unsynchronised) {
        from_ns = kept->info.created_ns;
        now_ns = real_ns;
    }
    return now_ns > from_ns ? now_ns - from_ns : 0;
}

uint64_t snapshot_expires_ns(Store *store, const Kept *kept) {
    uint64_t retention, age;
    ClockAnchor now;

    pthread_mutex_lock(&store->mutex);
    retention = store->snapshot_retention_ns;
    pthread_mutex_unlock(&store->mutex);
    if (kept->info.pinned || kept->info.transient || retention == 0)
        return 0;
    if (!kept->unsynchronised)
        return kept->info.created_ns + retention;
    now = store->now();
    age = snapshot_age_ns(store, kept, &now, now.real_ns);
    return now.real_ns + (retention > age ? retention - age : 0);
}
