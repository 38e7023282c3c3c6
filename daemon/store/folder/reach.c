/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <math.h>
#include <string.h>

#include "store/folder/store-private.h"

/*
 * Forecasts how far back each session will reach when the store is full, at its present rate.
 * Retention deletes from the session that exceeds its share the most, so in a full store there is
 * one level: each session holds its share plus that level, or all that it wants if that is less.
 * The level is found by bisection. A session that nobody writes keeps what it has.
 */

enum { RATE_SEGMENTS = 8, HALVINGS = 64 };

/* The rates of a session's latest segments. */
typedef struct Pace {
    double bytes_per_ns; /* 0: unknown */
    double segment_ns;
} Pace;

static Pace reach_pace_of(const Folder *folder) {
    uint64_t bytes = 0, duration_ns = 0;
    unsigned n = 0;

    for (size_t i = folder->n_entries; i > 0 && n < RATE_SEGMENTS; i--) {
        const Entry *entry = &folder->entries[i - 1];

        if (entry->duration_ns == 0)
            continue;
        bytes += entry->bytes;
        duration_ns += entry->duration_ns;
        n++;
    }
    if (n == 0 || !folder->claimed)
        return (Pace){};
    return (Pace){.bytes_per_ns = (double)bytes / (double)duration_ns,
                  .segment_ns = (double)duration_ns / n};
}

/* How long the session keeps its segments if there is enough space; infinite: for ever. */
static double reach_asked_ns(const Store *store, const Folder *folder, const Pace *pace) {
    uint64_t age_ns = store_retention_ns(store, folder);
    double asked = age_ns > 0 ? (double)age_ns : INFINITY;

    return folder->max_segments > 0 ? fmin(asked, folder->max_segments * pace->segment_ns) : asked;
}

/* How much it would hold on an infinite disk. */
static double reach_wanted_bytes(const Store *store, const Folder *folder) {
    double bytes = (double)(folder->bytes + folder->open_bytes);
    Pace pace = reach_pace_of(folder);

    if (pace.bytes_per_ns > 0)
        bytes = pace.bytes_per_ns * reach_asked_ns(store, folder, &pace);
    return folder->max_use_bytes > 0 ? fmin(bytes, (double)folder->max_use_bytes) : bytes;
}

/* The bytes that it holds at this level; its forecast so far is the upper bound. */
static double reach_bytes_at(const Folder *folder, uint64_t equal_share, double level) {
    double share = (double)folder_share_bytes(folder, equal_share);

    return fmin(fmax(share + level, 0), folder->forecast_bytes);
}

/* For the runtime sessions or for all: `room` is what they may hold together, `limit` is what
 * shares are computed from. */
static void reach_fill(Store *store, uint64_t limit, double room, bool runtime) {
    double low = -(double)limit, high = (double)limit, sum = 0;
    uint64_t equal_share = store_equal_share(store, limit, runtime);

    for (const Folder *f = store->folders; f; f = f->next)
        sum += f->runtime >= runtime ? f->forecast_bytes : 0;
    if (sum <= room)
        return;
    for (unsigned i = 0; i < HALVINGS; i++) {
        double level = (low + high) / 2;

        sum = 0;
        for (const Folder *f = store->folders; f; f = f->next)
            sum += f->runtime >= runtime ? reach_bytes_at(f, equal_share, level) : 0;
        if (sum > room)
            high = level;
        else
            low = level;
    }
    for (Folder *f = store->folders; f; f = f->next)
        if (f->runtime >= runtime)
            f->forecast_bytes = reach_bytes_at(f, equal_share, low);
}

/* In the order of retention: first runtime sessions within their quarter, then all. */
static void reach_forecast(Store *store) {
    uint64_t limit = store_limit_bytes(store), others = store_used_bytes(store);

    for (Folder *f = store->folders; f; f = f->next) {
        others -= f->bytes + f->open_bytes;
        f->forecast_bytes = reach_wanted_bytes(store, f);
    }
    reach_fill(store, store_runtime_limit_bytes(store), (double)store_runtime_limit_bytes(store),
               true);
    reach_fill(store, limit, limit > others ? (double)(limit - others) : 0, false);
}

/* Call it after reach_forecast(); 0: unknown. */
static double reach_of(const Store *store, const Folder *folder) {
    Pace pace = reach_pace_of(folder);

    if (pace.bytes_per_ns <= 0)
        return 0;
    return fmin(folder->forecast_bytes / pace.bytes_per_ns, reach_asked_ns(store, folder, &pace));
}

bool store_session_is_short(Store *store, const char *name, uint64_t least_ns) {
    bool is_short = false;
    const Folder *folder;

    pthread_mutex_lock(&store->mutex);
    folder = store_folder(store, name);
    if (folder) {
        Pace pace = reach_pace_of(folder);
        double least = fmin((double)least_ns, reach_asked_ns(store, folder, &pace)), reach;

        reach_forecast(store);
        reach = reach_of(store, folder);
        /* The requested time is one of the bounds, so allow for rounding. */
        is_short = reach > 0 && reach < least * 0.999;
    }
    pthread_mutex_unlock(&store->mutex);
    return is_short;
}

static uint64_t reach_to_ns(double reach) {
    return reach > 0 && reach < (double)INT64_MAX ? (uint64_t)reach : 0;
}

uint64_t store_session_reach_ns(Store *store, const char *name) {
    const Folder *folder;
    double reach = 0;

    pthread_mutex_lock(&store->mutex);
    folder = store_folder(store, name);
    if (folder) {
        reach_forecast(store);
        reach = reach_of(store, folder);
    }
    pthread_mutex_unlock(&store->mutex);
    return reach_to_ns(reach);
}

StoreUse store_use(Store *store) {
    double least = 0;
    StoreUse use;

    pthread_mutex_lock(&store->mutex);
    use = (StoreUse){.used_bytes = store_used_bytes(store),
                     .limit_bytes = store_limit_bytes(store),
                     .free_bytes = store->fs_free};
    reach_forecast(store);
    for (const Folder *folder = store->folders; folder; folder = folder->next) {
        double reach = folder->runtime ? 0 : reach_of(store, folder);

        if (reach > 0 && (least <= 0 || reach < least))
            least = reach;
    }
    pthread_mutex_unlock(&store->mutex);
    use.reach_ns = reach_to_ns(least);
    return use;
}
