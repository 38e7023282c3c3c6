/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/intake/builder-private.h"

/*
 * Newer kernels take the user part of a chain when the thread goes back to user mode, once for all
 * samples since it left it: they end in a mark and a cookie, and a record with the cookie has the
 * part. A copy of the sample waits for it, up to a limit.
 */

enum { DEFERRED_MAX = 4096, DEFERRED_BYTES_MAX = 8 << 20 };

static bool builder_deferred_is(const PdCallchain *chain) {
    return chain->n >= 2 && pd_u64_at(chain, chain->n - 2) == CONTEXT_USER_DEFERRED;
}

bool builder_deferred_is_full(const ProfileBuilder *builder) {
    return builder->n_deferred == DEFERRED_MAX || builder->deferred_bytes > DEFERRED_BYTES_MAX;
}

int builder_defer(ProfileBuilder *builder, const PdRecord *record, PdSample *sample) {
    BuilderDeferred *row;

    if (!builder_deferred_is(&sample->callchain))
        return 0;
    if (!builder->deferred) {
        builder->deferred = calloc(DEFERRED_MAX, sizeof(*builder->deferred));
        if (!builder->deferred)
            return -ENOMEM;
    }
    assert(builder->n_deferred < DEFERRED_MAX);
    row = &builder->deferred[(builder->first_deferred + builder->n_deferred) % DEFERRED_MAX];
    *row = (BuilderDeferred){.record = malloc(record->size),
                             .size = record->size,
                             .tid = sample->tid,
                             .misc = record->misc,
                             .swap = record->swap,
                             .event = sample->event,
                             .cookie = pd_u64_at(&sample->callchain, sample->callchain.n - 1)};
    if (!row->record)
        return -ENOMEM;
    memcpy(row->record, record->data, record->size);
    builder->deferred_bytes += record->size;
    builder->n_deferred++;
    return 1;
}

static BuilderDeferred *builder_deferred_at(ProfileBuilder *builder, size_t i) {
    return &builder->deferred[(builder->first_deferred + i) % DEFERRED_MAX];
}

bool builder_deferred_take(ProfileBuilder *builder, const uint64_t *cookie, uint32_t tid,
                           BuilderDeferred *ret) {
    size_t at = 0;

    while (cookie && at < builder->n_deferred &&
           (builder_deferred_at(builder, at)->cookie != *cookie ||
            builder_deferred_at(builder, at)->tid != tid))
        at++;
    if (at >= builder->n_deferred)
        return false;
    *ret = *builder_deferred_at(builder, at);
    for (; at > 0; at--)
        *builder_deferred_at(builder, at) = *builder_deferred_at(builder, at - 1);
    builder->first_deferred = (builder->first_deferred + 1) % DEFERRED_MAX;
    builder->n_deferred--;
    builder->deferred_bytes -= ret->size;
    return true;
}

void builder_deferred_join(ProfileBuilder *builder, PdSample *sample, const PdCallchain *user) {
    PdCallchain chain = sample->callchain;

    if (!builder_deferred_is(&chain))
        return;
    builder_words_begin(builder, sample);
    for (uint64_t i = 0; i < chain.n - 2; i++)
        builder_words_add(builder, sample, pd_u64_at(&chain, i));
    if (!user || user->n == 0)
        return;
    if (pd_u64_at(user, 0) < CONTEXT_MAX)
        builder_words_add(builder, sample, CONTEXT_USER);
    for (uint64_t i = 0; i < user->n; i++)
        builder_words_add(builder, sample, pd_u64_at(user, i));
}
