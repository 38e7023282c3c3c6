/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/folder/store-private.h"
#include "store/window/window.h"
#include "util/array.h"

/*
 * Searches from the newest segment back. Each segment has its own clock anchors, so a window in
 * wall-clock time is converted with each segment's own clock, even if the clock was set in between.
 * A window ends at a reboot, because the clock of the samples starts again there.
 */

/* After so many segments in a row that end before the window no manifest is read any more. What is
 * known is still looked at: the clock may have been wrong for a while. */
enum { STOP_AFTER = 3 };

typedef struct Search {
    Window *window;
    const WindowQuery *query;
    Folder *folder;
    Entry *entries;
    size_t n_entries;
    uint64_t next_number; /* of a segment of the folder */
    bool has_view;
    SegmentView view;
    Entry view_entry;
    bool is_idle;    /* no segment has samples in the window: accept one that recorded then */
    unsigned before; /* how many segments in a row ended before the window */
} Search;

Window *window_free(Window *w) {
    if (!w)
        return NULL;
    for (size_t i = 0; i < w->n_parts; i++)
        window_part_close(&w->parts[i]);
    for (size_t i = 0; i < w->n_sources; i++) {
        pd_event_source_done(&w->sources[i]);
        pd_events_free(w->source_events[i]);
    }
    free(w->sources);
    free(w->source_events);
    free(w->parts);
    pd_coverage_done(&w->coverage);
    closep(&w->folder);
    free(w);
    return NULL;
}

static int window_search_copy_entries(Search *s) {
    s->entries = calloc(s->folder->n_entries + 1, sizeof(*s->entries));
    if (!s->entries)
        return -ENOMEM;
    s->n_entries = s->folder->n_entries;
    s->next_number = s->folder->next_number;
    if (s->n_entries > 0)
        memcpy(s->entries, s->folder->entries, s->n_entries * sizeof(*s->entries));
    return 0;
}

static int window_search_copy_view(Search *s) {
    StoreSession *session = s->folder->session;
    int r = 0;

    if (!session)
        return 0;
    pthread_mutex_lock(&session->mutex);
    if (session->view.manifest) {
        r = segment_view_copy(&session->view, &s->view);
        s->has_view = r == 0;
    }
    pthread_mutex_unlock(&session->mutex);
    return r;
}

/* Copies the list and the view under one lock, so that a segment that is just being finished is in
 * one of them. */
static int window_search_list(Search *s) {
    Store *store = s->window->store;
    int r;

    pthread_mutex_lock(&store->mutex);
    s->folder = store_folder(store, s->query->session);
    r = s->folder ? window_search_copy_view(s) : -ENOENT;
    if (r == 0)
        r = window_search_copy_entries(s);
    pthread_mutex_unlock(&store->mutex);
    if (r < 0)
        return r;
    s->window->folder = store_folder_fd(store, s->folder);
    if (s->window->folder < 0)
        return s->window->folder;
    if (s->has_view) {
        s->view_entry = (Entry){
            .name = s->view.name, .directory = s->view.manifest->directory, .is_written = true};
        entry_fill(store, &s->view_entry, s->view.manifest);
    }
    return 0;
}

/* A span without samples may have been recorded too, while the host was idle. */
static bool window_search_is_recorded(const Entry *entry) {
    return entry->samples > 0 || (entry->covered && entry->covered_to_ns > entry->covered_from_ns);
}

static bool window_search_know(Search *s, Entry *entry) {
    return folder_know(s->window->store, s->folder, entry) && entry->name.state == SEGMENT_CLOSED &&
           window_search_is_recorded(entry) && !entry->unreadable;
}

/* On the clock of the query: the begin of what it covers and of its samples. */
static uint64_t window_search_begin_of(const WindowQuery *q, const Entry *e) {
    uint64_t first = q->by_monotonic ? e->first_ns : e->first_real_ns,
             from = e->covered_from_ns + (q->by_monotonic ? 0 : e->real_shift_ns);

    if (!e->covered)
        return first;
    return e->samples > 0 ? MIN(first, from) : from;
}

static uint64_t window_search_end_of(const WindowQuery *q, const Entry *e) {
    uint64_t last = q->by_monotonic ? e->last_ns : e->last_real_ns,
             to = e->covered_to_ns + (q->by_monotonic ? 0 : e->real_shift_ns);

    if (!e->covered)
        return last;
    return e->samples > 0 ? MAX(last, to) : to;
}

static bool window_search_is_before(const Search *s, const Entry *e) {
    const WindowQuery *q = s->query;
    uint64_t last = q->by_monotonic ? e->last_ns : e->last_real_ns;

    return (s->is_idle || e->samples == 0 ? window_search_end_of(q, e) : last) < q->since_ns;
}

static bool window_search_touches(const Search *s, const Entry *e) {
    const WindowQuery *q = s->query;
    uint64_t first = q->by_monotonic ? e->first_ns : e->first_real_ns;

    if (s->is_idle)
        first = window_search_begin_of(q, e);
    else if (e->samples == 0)
        return false;
    return !window_search_is_before(s, e) && (q->until_ns == 0 || first < q->until_ns);
}

static int window_search_add_part(Search *s, const Entry *entry) {
    Window *w = s->window;
    WindowPart *part = array_grow(&w->parts, &w->n_parts);

    if (!part)
        return -ENOMEM;
    *part =
        (WindowPart){.name = entry->name,
                     .directory = entry->directory,
                     .raw_bytes = entry->raw_bytes,
                     .real_from_ns = entry->covered ? entry->covered_from_ns + entry->real_shift_ns
                                                    : entry->first_real_ns,
                     .real_to_ns = entry->covered ? entry->covered_to_ns + entry->real_shift_ns
                                                  : entry->last_real_ns,
                     .fd = -1,
                     .manifest_fd = -1,
                     .view = {.fd = -1}};
    w->sensitive |= entry->sensitive;
    memcpy(w->boot, entry->boot, sizeof(w->boot));
    return 0;
}

static void window_search_note_boot(Window *w) {
    window_note_partial(w, "Recordings from before the last boot are left out");
}

/* 1: it belongs to the window; 0: it does not, and with *stop no older segment does either. */
static int window_search_consider(Search *s, const Entry *entry, bool *stop) {
    Window *w = s->window;
    int r;

    if (s->query->by_monotonic && strcmp(entry->boot, w->store->boot) != 0) {
        /* This clock cannot express an earlier moment, so an earlier one may have been meant. */
        if (w->n_parts > 0 && s->query->since_ns <= 1)
            window_search_note_boot(w);
        *stop = true;
        return 0;
    }
    s->before = window_search_is_before(s, entry) ? s->before + 1 : 0;
    if (!window_search_touches(s, entry))
        return 0;
    if (w->n_parts > 0 && strcmp(w->boot, entry->boot) != 0) {
        window_search_note_boot(w);
        *stop = true;
        return 0;
    }
    r = window_search_add_part(s, entry);
    return r < 0 ? r : 1;
}

/* Adds parts from the newest segment back. */
static int window_search_add_parts(Search *s) {
    Window *w = s->window;
    bool stop = false;
    int r = 0;

    s->before = 0;
    if (s->has_view && window_search_is_recorded(&s->view_entry)) {
        r = window_search_consider(s, &s->view_entry, &stop);
        if (r > 0) {
            w->parts[0].view = s->view;
            s->view = (SegmentView){.fd = -1};
        }
    }
    for (size_t i = s->n_entries; r >= 0 && !stop && i > 0; i--) {
        Entry *entry = &s->entries[i - 1];

        if (s->has_view && entry->name.number == s->view_entry.name.number)
            continue;
        if (s->before >= STOP_AFTER && !entry->is_known)
            break;
        if (window_search_know(s, entry))
            r = window_search_consider(s, entry, &stop);
        else if (entry->unreadable && w->n_parts > 0)
            window_note_partial(w, "Segment %08" PRIu64 " has lost its manifest and is left out",
                                entry->name.number);
    }
    return MIN(r, 0);
}

static int window_search_find_parts(Search *s) {
    Window *w = s->window;
    int r = window_search_add_parts(s);

    if (r == 0 && w->n_parts == 0) {
        s->is_idle = true;
        r = window_search_add_parts(s);
    }
    for (size_t i = 0; i < w->n_parts / 2; i++) {
        WindowPart part = w->parts[i];

        w->parts[i] = w->parts[w->n_parts - 1 - i];
        w->parts[w->n_parts - 1 - i] = part;
    }
    return r;
}

/* The wall-clock span of everything that exists, for a request outside of it. */
static void window_search_find_span(Search *s, uint64_t *ret_oldest, uint64_t *ret_newest,
                                    Entry *ret_first) {
    const WindowQuery by_day = {};

    *ret_oldest = *ret_newest = 0;
    *ret_first = (Entry){};
    for (size_t i = 0; i < s->n_entries && *ret_oldest == 0; i++)
        if (window_search_know(s, &s->entries[i])) {
            *ret_oldest = window_search_begin_of(&by_day, &s->entries[i]);
            *ret_first = s->entries[i];
        }
    if (s->has_view && window_search_is_recorded(&s->view_entry))
        *ret_newest = window_search_end_of(&by_day, &s->view_entry);
    for (size_t i = s->n_entries; i > 0 && *ret_newest == 0; i--)
        if (window_search_know(s, &s->entries[i - 1]))
            *ret_newest = window_search_end_of(&by_day, &s->entries[i - 1]);
    if (*ret_oldest == 0 && *ret_newest != 0) {
        *ret_oldest = window_search_begin_of(&by_day, &s->view_entry);
        *ret_first = s->view_entry;
    }
}

/* Uses the segments whose manifests were read; they reach back to before the window. */
static int window_search_cover(Search *s) {
    const Entry **known = calloc(s->n_entries + 1, sizeof(*known));
    size_t n = 0;
    int r;

    if (!known)
        return -ENOMEM;
    for (size_t i = 0; i < s->n_entries; i++) {
        if (s->has_view && s->entries[i].name.number == s->view_entry.name.number)
            continue;
        /* Only the entries after the last unread one count. */
        if (!s->entries[i].is_known)
            n = 0;
        known[n++] = &s->entries[i];
    }
    if (s->has_view)
        known[n++] = &s->view_entry;
    r = window_cover(s->window, s->query, known, n);
    free(known);
    return r;
}

/* The longest gap of all CPUs in the window. */
static PdGapReason window_search_longest(const PdCoverage *coverage) {
    PdGapReason reason = PD_GAP_UNKNOWN;
    uint64_t longest_ns = 0;

    for (size_t i = 0; i < coverage->n_gaps; i++) {
        const PdGap *gap = &coverage->gaps[i];

        if (gap->cpu == PD_ALL_CPUS && gap->to_ns - gap->from_ns > longest_ns) {
            longest_ns = gap->to_ns - gap->from_ns;
            reason = gap->reason;
        }
    }
    return reason;
}

/* The time without recordings is on the clock of the first segment behind it, else of the last one.
 */
static const Entry *window_search_behind(const Search *s) {
    const Entry *last = NULL;

    for (size_t i = 0; i < s->n_entries; i++) {
        const Entry *entry = &s->entries[i];

        if (!entry_is_readable(entry) || !window_search_is_recorded(entry))
            continue;
        last = entry;
        if (window_search_begin_of(s->query, entry) > s->query->since_ns)
            return entry;
    }
    return s->has_view ? &s->view_entry : last;
}

/* Why nothing of the window exists. The oldest go first, and numbers begin at 1. */
static PdGapReason window_search_reason(Search *s, uint64_t oldest_ns, const Entry *first) {
    const WindowQuery *q = s->query;
    const Entry *behind = window_search_behind(s);
    Window *w = s->window;

    if (oldest_ns == 0)
        return s->next_number > 1 ? PD_GAP_DELETED : PD_GAP_NOT_STARTED;
    if (!q->by_monotonic && q->until_ns > 0 && q->until_ns <= oldest_ns)
        return first->name.number > 1 ? PD_GAP_DELETED : PD_GAP_NOT_STARTED;
    if (!behind)
        return PD_GAP_UNKNOWN;
    memcpy(w->boot, behind->boot, sizeof(w->boot));
    return window_search_cover(s) < 0 ? PD_GAP_UNKNOWN : window_search_longest(&w->coverage);
}

static int window_search_judge(Search *s, SnapshotFailure *why) {
    const WindowQuery *q = s->query;
    Window *w = s->window;
    uint64_t oldest, newest;
    Entry first;

    window_search_find_span(s, &oldest, &newest, &first);
    if (w->n_parts == 0) {
        *why = (SnapshotFailure){.error = SNAPSHOT_UNAVAILABLE,
                                 .code = -ENODATA,
                                 .oldest_ns = oldest,
                                 .newest_ns = newest,
                                 .reason = window_search_reason(s, oldest, &first)};
        snprintf(why->text, sizeof(why->text), "Nothing in the window is recorded");
        return -ENODATA;
    }
    /* Something older existed once, because the numbers do not begin at 1. */
    if (q->since_ns > 0 && first.name.number == w->parts[0].name.number && first.name.number > 1 &&
        window_search_begin_of(q, &first) > q->since_ns)
        window_note_partial(w, "Older recordings were deleted to make room");
    return 0;
}

/* Converts the window to the clock of each part. */
static int window_search_set_times(Window *w, const WindowQuery *q) {
    for (size_t i = 0; i < w->n_parts; i++) {
        WindowPart *part = &w->parts[i];
        const Manifest *m;
        int r = q->by_monotonic ? 0 : window_read_manifest(w, part);

        if (r < 0)
            return r;
        m = window_manifest(part);
        part->since_ns = q->by_monotonic   ? q->since_ns
                         : q->since_ns > 0 ? manifest_monotonic_ns(m, q->since_ns)
                                           : 0;
        part->until_ns = q->until_ns == 0  ? UINT64_MAX
                         : q->by_monotonic ? q->until_ns
                                           : manifest_monotonic_ns(m, q->until_ns);
        part->manifest = manifest_free(part->manifest);
    }
    return 0;
}

static int window_search_run(Search *s, SnapshotFailure *why) {
    int r = window_search_list(s);

    if (r == -ENOENT && !s->folder) {
        *why = (SnapshotFailure){.error = SNAPSHOT_NO_SESSION, .code = r};
        snprintf(why->text, sizeof(why->text), "There is no session '%s'", s->query->session);
        return r;
    }
    if (r == 0)
        r = window_search_find_parts(s);
    if (r == 0)
        r = window_search_judge(s, why);
    if (r == 0)
        r = window_search_cover(s);
    if (r == 0)
        r = window_open_ahead(s->window);
    return r == 0 ? window_search_set_times(s->window, s->query) : r;
}

int window_new(Store *store, const WindowQuery *query, Window **ret, SnapshotFailure *ret_why) {
    _cleanup_(window_freep) Window *w = calloc(1, sizeof(*w));
    Search s = {.window = w, .query = query, .view = {.fd = -1}};
    int r;

    *ret_why = (SnapshotFailure){.error = SNAPSHOT_FAILED};
    if (!w)
        return -ENOMEM;
    w->store = store;
    w->folder = -1;
    snprintf(w->session, sizeof(w->session), "%s", query->session);
    r = window_search_run(&s, ret_why);
    free(s.entries);
    segment_view_done(&s.view);
    if (r < 0) {
        ret_why->code = ret_why->code ?: r;
        return r;
    }
    *ret = TAKE_PTR(w);
    return 0;
}
