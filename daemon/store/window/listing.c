/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/window/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "store/disk/dirfd.h"
#include "store/window/window.h"
#include "store/writer/session-private.h"
#include "util/array.h"

/*
 * Rows are copied first, so that the callback may take its time. Manifests that were not needed
 * before are read here, each once.
 */

typedef struct Listing {
    Store *store;
    char (*names)[CONFIG_NAME_MAX];
    size_t n_names;
} Listing;

static int listing_by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

static int listing_list_names(Listing *l, const char *session) {
    int r = 0;

    pthread_mutex_lock(&l->store->mutex);
    for (const Folder *f = l->store->folders; r == 0 && f; f = f->next) {
        char(*name)[CONFIG_NAME_MAX];

        if (session && strcmp(f->name, session) != 0)
            continue;
        name = array_grow(&l->names, &l->n_names);
        if (name)
            memcpy(*name, f->name, sizeof(*name));
        r = name ? 0 : -ENOMEM;
    }
    pthread_mutex_unlock(&l->store->mutex);
    if (l->n_names > 0)
        qsort(l->names, l->n_names, sizeof(*l->names), listing_by_name);
    return r == 0 && session && l->n_names == 0 ? -ENOENT : r;
}

typedef struct Rows {
    Folder *folder;
    Entry *entries; /* the open one last, if there is one */
    size_t n;
} Rows;

/* Call it with the mutex held. */
static void listing_add_view(Store *store, Rows *rows) {
    StoreSession *session = rows->folder->session;
    const Manifest *manifest;

    if (!session)
        return;
    pthread_mutex_lock(&session->mutex);
    manifest = session->view.manifest;
    if (manifest && (rows->n == 0 || rows->entries[rows->n - 1].name.number < manifest->sequence)) {
        Entry *entry = &rows->entries[rows->n++];

        *entry = (Entry){.name = session->view.name,
                         .directory = manifest->directory,
                         .is_written = true,
                         .bytes = rows->folder->open_bytes};
        entry_fill(store, entry, manifest);
        entry->completeness = SEGMENT_IS_OPEN;
    }
    pthread_mutex_unlock(&session->mutex);
}

static int listing_copy_rows(Store *store, const char *name, Rows *ret) {
    int r = 0;

    pthread_mutex_lock(&store->mutex);
    ret->folder = store_folder(store, name);
    ret->entries = ret->folder ? calloc(ret->folder->n_entries + 1, sizeof(*ret->entries)) : NULL;
    if (!ret->folder)
        r = -ENOENT;
    else if (!ret->entries)
        r = -ENOMEM;
    if (r == 0) {
        ret->n = ret->folder->n_entries;
        if (ret->n > 0)
            memcpy(ret->entries, ret->folder->entries, ret->n * sizeof(*ret->entries));
        listing_add_view(store, ret);
    }
    pthread_mutex_unlock(&store->mutex);
    return r;
}

static StoreCoverage listing_coverage_of(const Entry *entry) {
    PdCoverage covered = {.from_ns = entry->covered_from_ns, .to_ns = entry->covered_to_ns};
    StoreCoverage ret = {.is_known = entry->covered};

    if (!entry->covered)
        return ret;
    covered.gaps = (PdGap *)entry->gaps;
    covered.n_gaps = entry->n_gaps;
    ret.since_ns = entry->covered_from_ns + entry->real_shift_ns;
    ret.until_ns = entry->covered_to_ns + entry->real_shift_ns;
    ret.recorded_ns = pd_coverage_recorded_ns(&covered);
    ret.n_gaps = entry->n_gaps;
    for (size_t i = 0; i < entry->n_gaps; i++) {
        ret.gaps[i] = entry->gaps[i];
        ret.gaps[i].from_ns += entry->real_shift_ns;
        ret.gaps[i].to_ns += entry->real_shift_ns;
    }
    return ret;
}

/* What was not recorded between two segments that follow each other. */
static PdGap listing_gap_between(const Entry *before, const Entry *next) {
    bool same_boot = strcmp(before->boot, next->boot) == 0,
         is_joined = same_boot && before->covered_to_ns >= next->covered_from_ns;

    if (!before->covered || !next->covered || before->name.state == SEGMENT_OPEN ||
        (is_joined && !entry_slept_between(before, next)))
        return (PdGap){};
    return (PdGap){.from_ns = before->covered_to_ns + before->real_shift_ns,
                   .to_ns = next->covered_from_ns + next->real_shift_ns,
                   .cpu = PD_ALL_CPUS,
                   .reason = is_joined ? PD_GAP_ASLEEP : before->after};
}

static StoreSegmentInfo listing_info_of(const Store *store, const char *session,
                                        const Entry *entry) {
    StoreSegmentInfo info = {
        .layout = entry->directory ? LAYOUT_DIRECTORY : LAYOUT_FILE,
        .sensitive = entry->sensitive,
        .since_ns = entry->first_real_ns,
        .until_ns = entry->last_real_ns,
        .samples = entry->samples,
        .lost = entry->lost,
        .stacks = entry->stacks,
        .bytes = entry->bytes,
        .completeness = entry->name.state == SEGMENT_DAMAGED ? DAMAGED : entry->completeness,
        .coverage = listing_coverage_of(entry),
        .n_files = entry->directory ? 1 + MIN(store->n_cpus, (unsigned)SEGMENT_FILES_MAX) : 1,
    };

    snprintf(info.session, sizeof(info.session), "%s", session);
    snprintf(info.boot, sizeof(info.boot), "%.39s", entry->boot);
    segment_name_print(&entry->name, info.name);
    return info;
}

static bool listing_is_within(const Entry *entry, uint64_t since_ns, uint64_t until_ns) {
    return (since_ns == 0 || (entry->samples > 0 && entry->last_real_ns >= since_ns)) &&
           (until_ns == 0 || (entry->samples > 0 && entry->first_real_ns < until_ns));
}

static int listing_each_row(Store *store, const char *session, uint64_t since_ns, uint64_t until_ns,
                            int (*fn)(void *userdata, const StoreSegmentInfo *info),
                            void *userdata) {
    const Entry *before = NULL;
    Rows rows = {};
    int r = listing_copy_rows(store, session, &rows);

    for (size_t i = 0; r >= 0 && i < rows.n; i++) {
        Entry *entry = &rows.entries[i];
        StoreSegmentInfo info;

        if (!folder_know(store, rows.folder, entry))
            continue;
        if (listing_is_within(entry, since_ns, until_ns)) {
            info = listing_info_of(store, session, entry);
            if (before)
                info.gap_before = listing_gap_between(before, entry);
            r = fn(userdata, &info);
        }
        before = entry;
    }
    free(rows.entries);
    return r == -ENOENT ? 0 : MIN(r, 0);
}

int store_each_segment(Store *store, const char *session, uint64_t since_ns, uint64_t until_ns,
                       int (*fn)(void *userdata, const StoreSegmentInfo *info), void *userdata) {
    Listing listing = {.store = store};
    int r = listing_list_names(&listing, session);

    for (size_t i = 0; r >= 0 && i < listing.n_names; i++)
        r = listing_each_row(store, listing.names[i], since_ns, until_ns, fn, userdata);
    free(listing.names);
    return MIN(r, 0);
}

static Entry *listing_find_row(Rows *rows, const char *segment) {
    for (size_t i = 0; i < rows->n; i++) {
        char text[SEGMENT_NAME_MAX];

        segment_name_print(&rows->entries[i].name, text);
        if (strcmp(text, segment) == 0)
            return &rows->entries[i];
    }
    return NULL;
}

int store_open_segment(Store *store, const char *session, const char *segment, const char *file,
                       int *ret_fd, uint64_t *ret_bytes, bool *ret_sensitive,
                       StoreLease **ret_lease) {
    _cleanup_(store_lease_freep) StoreLease *lease = NULL;
    _cleanup_close_ int folder = -1;
    Rows rows = {};
    int r = listing_copy_rows(store, session, &rows);
    Entry *entry = r == 0 ? listing_find_row(&rows, segment) : NULL;

    if (r == 0)
        r = entry && folder_know(store, rows.folder, entry) ? 0 : -ENOENT;
    if (r == 0)
        r = store_lease_new(store, session, entry->name.number, &lease);
    if (r == 0) {
        folder = store_folder_fd(store, rows.folder);
        r = folder < 0
                ? folder
                : dirfd_open_part(folder, segment, entry->directory, file, ret_fd, ret_bytes);
    }
    if (r == 0) {
        *ret_sensitive = entry->sensitive || entry->unreadable;
        *ret_lease = TAKE_PTR(lease);
    }
    free(rows.entries);
    return r;
}

/* The first of the newest entries that are all read and of this boot. */
static size_t listing_known_from(const Store *store, const Rows *rows) {
    size_t i = rows->n;

    while (i > 0 && rows->entries[i - 1].is_known &&
           (rows->entries[i - 1].unreadable || strcmp(rows->entries[i - 1].boot, store->boot) == 0))
        i--;
    return i;
}

StoreCoverage store_coverage(Store *store, const char *session) {
    const WindowQuery query = {.by_monotonic = true};
    StoreCoverage covered = {};
    Window window = {};
    const Entry **known;
    Rows rows = {};
    size_t n = 0;

    if (listing_copy_rows(store, session, &rows) < 0)
        return covered;
    known = calloc(rows.n + 1, sizeof(*known));
    for (size_t i = listing_known_from(store, &rows); known && i < rows.n; i++)
        known[n++] = &rows.entries[i];
    memcpy(window.boot, store->boot, sizeof(window.boot));
    if (n > 0 && window_cover(&window, &query, known, n) == 0)
        covered = window_covered(&window);
    pd_coverage_done(&window.coverage);
    free(known);
    free(rows.entries);
    covered.is_known &= covered.until_ns > covered.since_ns;
    return covered;
}

static int listing_widen(void *userdata, const StoreSegmentInfo *info) {
    uint64_t *span = userdata;

    if (info->samples == 0)
        return 0;
    span[0] = span[1] ? MIN(span[0], info->since_ns) : info->since_ns;
    span[1] = MAX(span[1], info->until_ns);
    return 0;
}

/* Whether the entry has samples; then widens the span. Sets *unread if its manifest was not read
 * yet. */
static bool listing_widen_by(Store *store, const char *session, const Entry *entry,
                             uint64_t span[2], bool *unread) {
    StoreSegmentInfo info;

    *unread |= !entry->is_known;
    if (!entry->is_known || entry->samples == 0)
        return false;
    info = listing_info_of(store, session, entry);
    (void)listing_widen(span, &info);
    return true;
}

/* The first and last entry are enough, since numbers follow time. `reads`: may touch the disk, so
 * not on the main thread. */
static bool listing_span_of(Store *store, const char *session, bool reads, uint64_t span[2]) {
    bool unread = false;
    Rows rows = {};

    if (listing_copy_rows(store, session, &rows) < 0)
        return true;
    for (size_t i = 0; i < rows.n; i++)
        if ((!reads || folder_know(store, rows.folder, &rows.entries[i])) &&
            listing_widen_by(store, session, &rows.entries[i], span, &unread))
            break;
    for (size_t i = rows.n; i > 0; i--)
        if ((!reads || folder_know(store, rows.folder, &rows.entries[i - 1])) &&
            listing_widen_by(store, session, &rows.entries[i - 1], span, &unread))
            break;
    free(rows.entries);
    return !unread;
}

static bool listing_span_of_all(Store *store, const char *session, bool reads, uint64_t span[2]) {
    Listing listing = {.store = store};
    bool is_whole = true;

    if (listing_list_names(&listing, session) == 0)
        for (size_t i = 0; i < listing.n_names; i++)
            is_whole &= listing_span_of(store, listing.names[i], reads, span);
    free(listing.names);
    return is_whole;
}

bool store_span(Store *store, const char *session, uint64_t *ret_oldest_ns,
                uint64_t *ret_newest_ns) {
    uint64_t span[2] = {};
    bool is_whole = listing_span_of_all(store, session, false, span);

    *ret_oldest_ns = span[0];
    *ret_newest_ns = span[1];
    return is_whole;
}

void store_learn_span(Store *store) {
    uint64_t span[2] = {};

    (void)listing_span_of_all(store, NULL, true, span);
}
