/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "source/namer.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "interval/pod-names.h"
#include "symbol/symbol.h"
#include "util/clock.h"

/*
 * One resolver for all threads, which name one profile at a time. It keeps each table that it has
 * made, so where these take too much memory it forgets those that were used longest ago: with a
 * cache folder they are then mapped from there, which costs no memory of our own.
 */

/* Without a cache folder a table that was forgotten is made again, which costs much more. */
enum { TABLE_BYTES_MAX = 8 << 20, TABLE_BYTES_ALONE_MAX = 64 << 20, MAPPINGS_MAX = 4096 };

struct Namer {
    NamerOptions options;
    pthread_mutex_t lock;
    bool is_asked;
    char *binaries; /* NULL: not known */
    const char *caches[1];
    SymbolResolver *resolver; /* NULL: made when it is needed */
    PodNames *pods;
};

Namer *namer_free(Namer *namer) {
    if (!namer)
        return NULL;
    symbol_resolver_free(namer->resolver);
    pod_names_free(namer->pods);
    free(namer->binaries);
    (void)pthread_mutex_destroy(&namer->lock);
    free(namer);
    return NULL;
}

int namer_new(const NamerOptions *options, Namer **ret) {
    _cleanup_(namer_freep) Namer *namer = calloc(1, sizeof(*namer));
    int r;

    if (!namer)
        return -ENOMEM;
    (void)pthread_mutex_init(&namer->lock, NULL);
    namer->options = *options;
    r = pod_names_new(options->root, &namer->pods);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(namer);
    return 0;
}

/* The caller holds the lock. */
static void namer_set_binaries(Namer *namer, char *path) {
    bool is_same = path && namer->binaries && strcmp(path, namer->binaries) == 0;

    namer->is_asked = true;
    if (is_same || !path) {
        free(path);
        return;
    }
    namer->resolver = symbol_resolver_free(namer->resolver);
    free(namer->binaries);
    namer->binaries = path;
}

void namer_ask(Namer *namer, SourceLink *link, bool is_new) {
    char *path = NULL;
    bool is_asked;

    (void)pthread_mutex_lock(&namer->lock);
    is_asked = namer->is_asked && !is_new;
    (void)pthread_mutex_unlock(&namer->lock);
    if (is_asked || source_link_ask_binaries(link, &path) < 0)
        return;
    (void)pthread_mutex_lock(&namer->lock);
    namer_set_binaries(namer, path);
    (void)pthread_mutex_unlock(&namer->lock);
}

static int namer_get_resolver(Namer *namer) {
    SymbolOptions options = {
        .caches = namer->caches,
        .n_caches = namer->binaries ? 1 : 0,
        .table_cache = namer->options.cache_folder,
        .inlined = namer->options.inlines,
        .local_files = true,
        .local_processes = true,
    };

    namer->caches[0] = namer->binaries;
    return namer->resolver ? 0 : symbol_resolver_new(&options, &namer->resolver);
}

static void namer_limit(Namer *namer) {
    size_t max = namer->options.cache_folder ? TABLE_BYTES_MAX : TABLE_BYTES_ALONE_MAX;

    symbol_resolver_limit(namer->resolver, max, MAPPINGS_MAX);
    symbol_resolver_rest(namer->resolver);
}

static int namer_name(Namer *namer, const Profile *profile, FrameNames *names) {
    int r = namer_get_resolver(namer);

    if (r == 0)
        r = symbol_name_frames(namer->resolver, profile, names);
    if (namer->resolver)
        namer_limit(namer);
    return r;
}

int namer_make(Namer *namer, Profile *profile, uint64_t since_ns, uint64_t until_ns,
               Interval **ret) {
    _cleanup_(profile_freep) Profile *own = profile;
    _cleanup_(frame_names_freep) FrameNames *names = NULL;
    Interval *interval;
    int r = frame_names_new(&names);

    (void)pthread_mutex_lock(&namer->lock);
    if (r == 0)
        r = namer_name(namer, own, names);
    if (r == 0)
        r = interval_new(since_ns, until_ns, own, names, &interval);
    if (r == 0) {
        (void)TAKE_PTR(own);
        (void)TAKE_PTR(names);
        r = pod_names_add(namer->pods, clock_monotonic_ns(), interval);
        if (r < 0)
            interval_unref(interval);
        else
            *ret = interval;
    }
    /* Reading the symbols of a file for the first time takes much memory for a moment. */
    (void)malloc_trim(0);
    (void)pthread_mutex_unlock(&namer->lock);
    return r;
}
