/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-item.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "send/backlog.h"
#include "util/clock.h"
#include "util/hash.h"

/*
 * Windows and snapshots as things that have a key and bytes. Windows are multiples of the interval
 * since 1970, so the same time has the same window, and the same key, whenever the gateway was
 * started. Only a changed interval makes a shorter one.
 */

#define S3_SPREAD_MAX_NS (60 * NS_PER_SECOND)
#define S3_SPREAD_SEED   UINT64_C(0x73332d7370726561)

/* profd needs a moment until the last samples of a window are in its segments. */
#define S3_SETTLE_NS NS_PER_SECOND

S3Slot s3_schedule_next(uint64_t cursor_ns, uint64_t interval_ns, uint64_t spread_ns) {
    uint64_t until_ns = (cursor_ns / interval_ns + 1) * interval_ns;

    return (S3Slot){
        .since_ns = cursor_ns, .until_ns = until_ns, .due_ns = until_ns + S3_SETTLE_NS + spread_ns};
}

uint64_t s3_schedule_due(uint64_t now_ns, uint64_t interval_ns, uint64_t spread_ns) {
    uint64_t wait_ns = S3_SETTLE_NS + spread_ns;

    return now_ns > wait_ns ? s3_schedule_first(now_ns - wait_ns, interval_ns) : 0;
}

/* A clock that is years behind, as it is before a host without a battery asks for the time, does
 * not move the cursor: what was uploaded would be uploaded again. */
static bool s3_schedule_was_ahead(const S3State *state, uint64_t now_ns) {
    return state->until_ns > now_ns &&
           (state->until_ns <= state->seen_ns || state->until_ns - now_ns <= BACKLOG_REACH_NS);
}

bool s3_schedule_take(S3State *state, const SendConfig *config, uint64_t spread_ns,
                      uint64_t now_ns) {
    uint64_t age = config->max_age_ns, interval = config->object_interval_ns, lost_ns = 0;
    uint64_t due_ns = s3_schedule_due(now_ns, interval, spread_ns), since_ns = state->until_ns;
    uint64_t reach_ns = due_ns > BACKLOG_REACH_NS ? due_ns - BACKLOG_REACH_NS : 0;
    bool was_ahead = s3_schedule_was_ahead(state, now_ns);

    state->seen_ns = MAX(state->seen_ns, now_ns);
    if (was_ahead) {
        (void)range_list_remove(&state->unsent, (Range){due_ns, UINT64_MAX});
        state->until_ns = due_ns;
    } else if (due_ns > since_ns) {
        since_ns = MAX(since_ns, s3_schedule_first(reach_ns, interval));
        lost_ns = since_ns - state->until_ns;
        lost_ns += range_list_add(&state->unsent, (Range){since_ns, due_ns});
        state->until_ns = due_ns;
    }
    if (age > 0 && now_ns > age)
        lost_ns += range_list_expire(&state->unsent, s3_schedule_first(now_ns - age, interval));
    state->counters.expired_ns += lost_ns;
    return was_ahead || lost_ns > 0;
}

static Range s3_schedule_oldest(const RangeList *unsent, uint64_t failed_ns) {
    for (size_t i = 0; i < unsent->n; i++) {
        Range range = unsent->items[i];

        range.since_ns = MAX(range.since_ns, failed_ns);
        if (range.since_ns < range.until_ns)
            return range;
    }
    return unsent->items[0];
}

S3Slot s3_schedule_pick(const RangeList *unsent, uint64_t cursor_ns, uint64_t interval_ns,
                        uint64_t failed_ns) {
    Range last = unsent->items[unsent->n - 1], first;

    if (last.until_ns == cursor_ns)
        return (S3Slot){.since_ns =
                            MAX(last.since_ns, s3_schedule_first(cursor_ns - 1, interval_ns)),
                        .until_ns = cursor_ns};
    first = s3_schedule_oldest(unsent, failed_ns);
    return (S3Slot){.since_ns = first.since_ns,
                    .until_ns =
                        MIN(first.until_ns, (first.since_ns / interval_ns + 1) * interval_ns)};
}

uint64_t s3_schedule_first(uint64_t now_ns, uint64_t interval_ns) {
    return now_ns / interval_ns * interval_ns;
}

uint64_t s3_schedule_spread(const char *host, const char *name, uint64_t interval_ns) {
    uint64_t limit = MIN(interval_ns / 4, S3_SPREAD_MAX_NS);
    uint64_t h =
        hash_bytes(S3_SPREAD_SEED, (Bytes){.data = (const uint8_t *)host, .size = strlen(host)});

    h = hash_bytes(h, (Bytes){.data = (const uint8_t *)name, .size = strlen(name)});
    return limit > 0 ? h % limit : 0;
}

void s3_item_done(S3Item *item) {
    s3_object_done(&item->object);
    *item = (S3Item){.object.fd = -1};
}

/* A folder becomes several objects below one key, with the names of its files. */
static int s3_item_add_file(S3Item *item) {
    size_t n = strlen(item->key);
    const char *file = item->snapshot.files[item->file];

    if (n + 1 + strlen(file) >= sizeof(item->key))
        return -ENAMETOOLONG;
    (void)snprintf(item->key + n, sizeof(item->key) - n, "/%s", file);
    return 0;
}

int s3_item_name(S3Item *item, const char *template, const char *host, const char *session) {
    const S3KeyFacts facts = {.host = host,
                              .name = item->is_snapshot ? item->snapshot.name : session,
                              .time_ns = item->is_snapshot ? item->snapshot.created_us * NS_PER_US
                                                           : item->slot.since_ns};
    int r = s3_key_make(template, &facts, item->key);

    if (r == 0 && item->is_snapshot && item->snapshot.is_folder)
        r = s3_item_add_file(item);
    return r;
}

/* profd gives the part of the newest boot, and says where it begins. The part of the oldest boot
 * comes first, and the window that begins behind it is the next one, also where that part may not
 * be read. */
static int s3_item_fetch_window(S3Item *item, S3Profd *profd) {
    uint64_t since_ns = item->slot.since_ns;
    S3Window window, older;
    int r = s3_profd_window(profd, since_ns, item->slot.until_ns, &window);

    if (r < 0)
        return r;
    while (window.older_ns > since_ns && window.older_ns < item->slot.until_ns) {
        r = s3_profd_window(profd, since_ns, window.older_ns, &older);
        if (r == -ENODATA)
            break;
        s3_object_done(&window.object);
        item->slot.until_ns = window.older_ns;
        if (r < 0)
            return r;
        window = older;
    }
    item->object = window.object;
    item->samples = window.samples;
    item->missing_ns = window.missing_ns;
    item->deleted_ns = window.deleted_ns;
    return 0;
}

void s3_item_fetch(S3Item *item, S3Profd *profd) {
    const S3Snapshot *snapshot = &item->snapshot;

    if (!item->is_snapshot) {
        item->error = s3_item_fetch_window(item, profd);
        return;
    }
    /* The samples of a folder are counted once. */
    item->samples = item->file == 0 ? snapshot->samples : 0;
    item->error =
        s3_profd_snapshot(profd, snapshot->name,
                          snapshot->is_folder ? snapshot->files[item->file] : "", &item->object);
}

void s3_pending_done(S3Pending *pending) {
    free(pending->items);
    *pending = (S3Pending){};
}

void s3_pending_skip(S3Pending *pending) {
    if (pending->n_failed++ == 0)
        pending->first_failed = pending->next;
    pending->next++;
}

typedef struct S3PendingList {
    S3Pending *pending;
    const S3Pending *last;
    S3State *state;
} S3PendingList;

static size_t s3_pending_next_file(const S3Pending *last, const S3Snapshot *snapshot) {
    for (size_t i = 0; i < last->n; i++)
        if (last->items[i].created_us == snapshot->created_us &&
            strcmp(last->items[i].name, snapshot->name) == 0)
            return last->items[i].next_file;
    return 0;
}

static int s3_pending_add(void *userdata, const S3Snapshot *snapshot) {
    S3PendingList *list = userdata;
    S3Pending *pending = list->pending;
    S3Snapshot *longer;

    if (s3_state_has_snapshot(list->state, snapshot->name, snapshot->created_us))
        return 0;
    if (pending->n >= S3_PENDING_MAX)
        return 0;
    longer = reallocarray(pending->items, pending->n + 1, sizeof(*longer));
    if (!longer)
        return -ENOMEM;
    pending->items = longer;
    longer += pending->n++;
    *longer = *snapshot;
    longer->next_file = s3_pending_next_file(list->last, snapshot);
    return 0;
}

static int s3_pending_compare(const void *a, const void *b) {
    const S3Snapshot *x = a, *y = b;

    return (x->created_us > y->created_us) - (x->created_us < y->created_us);
}

int s3_pending_fetch(const S3Pending *last, S3Profd *profd, S3State *state, S3Pending *ret) {
    _cleanup_(s3_pending_done) S3Pending pending = {};
    S3PendingList list = {.pending = &pending, .last = last, .state = state};
    int r;

    s3_state_begin_list(state);
    r = s3_profd_list(profd, s3_pending_add, &list);
    if (r < 0)
        return r;
    s3_state_end_list(state);
    if (pending.n > 1)
        qsort(pending.items, pending.n, sizeof(*pending.items), s3_pending_compare);
    *ret = pending;
    pending = (S3Pending){};
    return 0;
}
