/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/order/sorter.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "util/buffer.h"
#include "util/file.h"
#include "util/macro.h"

/*
 * Takes records and returns them by time. They are kept in an arena in order of arrival, with an
 * index that is sorted on demand by merging its ascending runs, which are few, since each CPU's
 * records are in order. When the arena is full, its older half is written, sorted, to a run in an
 * unlinked file; reading merges the runs and the arena. Records not older than the end of the
 * newest run are appended to it, so a recording whose records are out of order by less than half
 * the arena makes one run, and a directory one run per file. If there are many runs they are merged
 * into one, so neither memory nor descriptors grow.
 *
 * Equal times keep their order because a run is older than all later runs and the arena, and the
 * arena releases equal times in order of arrival.
 */

enum {
    MEMORY_DEFAULT = 8 << 20,
    MEMORY_MIN = 64 << 10,
    RUNS_MAX = 32,
    RUN_BUFFER_BYTES = 64 << 10,
    RUN_PUNCH_BYTES = 8 << 20, /* read bytes before their disk space is freed */
};

/* A record in the arena or a run; its bytes follow, padded to 8. */
typedef struct Held {
    uint64_t time, offset, payload;
    uint32_t type, size, file;
    uint32_t place; /* in the index, while the arena is compacted */
    uint16_t misc;
    bool swap, decompressed, taken;
} Held;

typedef struct Item {
    uint64_t time;
    uint64_t at; /* in the arena */
} Item;

typedef struct Run {
    int fd;        /* its offset is the end of the run */
    Buffer window; /* read from the file; from `at` on not yet returned */
    size_t at;
    off_t read_to; /* file offset of the end of the window */
    off_t punched; /* the file is a hole up to here */
    bool empty;
    uint64_t time; /* of the record at `at` */
    uint64_t last; /* the latest time written */
} Run;

struct PdSorter {
    uint64_t memory_bytes;
    char *folder;
    Buffer arena;
    uint64_t taken_bytes; /* of the arena */
    Item *items, *spare;
    size_t first, n, allocated; /* items[first … n) are left */
    bool unsorted;
    Run runs[RUNS_MAX];
    unsigned n_runs;
    Run *last_taken; /* its record was returned; it advances at the next call */
    uint64_t released;
    bool spilled;
};

static uint64_t sorter_held_bytes(uint32_t size) {
    return sizeof(Held) + ALIGN8((uint64_t)size);
}

static Held *sorter_held_at(PdSorter *s, const Item *item) {
    return (Held *)(s->arena.data + item->at);
}

static void sorter_run_done(Run *run) {
    closep(&run->fd);
    buffer_done(&run->window);
    *run = (Run){.fd = -1};
}

int pd_sorter_new(const PdOrderOptions *options, PdSorter **ret) {
    static const PdOrderOptions defaults = {};
    _cleanup_(pd_sorter_freep) PdSorter *s = calloc(1, sizeof(*s));
    const char *folder;

    if (!s)
        return -ENOMEM;
    options = options ?: &defaults;
    folder = options->spill_folder ?: getenv("TMPDIR") ?: "/var/tmp";
    s->folder = strdup(folder);
    if (!s->folder)
        return -ENOMEM;
    s->memory_bytes = options->memory_bytes > 0 ? MAX(options->memory_bytes, (uint64_t)MEMORY_MIN)
                                                : (uint64_t)MEMORY_DEFAULT;
    *ret = TAKE_PTR(s);
    return 0;
}

PdSorter *pd_sorter_free(PdSorter *s) {
    if (!s)
        return NULL;
    for (unsigned i = 0; i < s->n_runs; i++)
        sorter_run_done(&s->runs[i]);
    buffer_done(&s->arena);
    free(s->items);
    free(s->spare);
    free(s->folder);
    free(s);
    return NULL;
}

/* The end of the run that begins at `from`. A strictly descending run is reversed. */
static size_t sorter_run_end(Item *items, size_t from, size_t n) {
    size_t end = from + 1;

    if (end == n)
        return end;
    if (items[end].time >= items[from].time) {
        while (end < n && items[end].time >= items[end - 1].time)
            end++;
        return end;
    }
    while (end < n && items[end].time < items[end - 1].time)
        end++;
    for (size_t a = from, b = end - 1; a < b; a++, b--) {
        Item t = items[a];

        items[a] = items[b];
        items[b] = t;
    }
    return end;
}

static void sorter_merge_two(const Item *a, const Item *a_end, const Item *b, const Item *b_end,
                             Item *to) {
    while (a < a_end && b < b_end)
        *to++ = b->time < a->time ? *b++ : *a++;
    memcpy(to, a, (size_t)(a_end - a) * sizeof(*a));
    to += a_end - a;
    memcpy(to, b, (size_t)(b_end - b) * sizeof(*b));
}

/* Merges neighbouring runs until one is left. */
static void sorter_sort_items(PdSorter *s) {
    size_t n = s->n - s->first;

    memmove(s->items, s->items + s->first, n * sizeof(*s->items));
    s->first = 0;
    s->n = n;
    for (bool many = s->unsorted; many;) {
        Item *from = s->items;

        many = false;
        for (size_t a = 0; a < n;) {
            size_t b = sorter_run_end(from, a, n), end = b < n ? sorter_run_end(from, b, n) : n;

            sorter_merge_two(from + a, from + b, from + b, from + end, s->spare + a);
            many |= a > 0 || end < n;
            a = end;
        }
        s->items = s->spare;
        s->spare = from;
    }
    s->unsorted = false;
}

/* Moves the remaining records to the start of the arena. */
static void sorter_compact(PdSorter *s) {
    uint64_t to = 0;

    for (size_t i = s->first; i < s->n; i++)
        sorter_held_at(s, &s->items[i])->place = (uint32_t)i;
    for (uint64_t at = 0; at < s->arena.size;) {
        Held *held = (Held *)(s->arena.data + at);
        uint64_t bytes = sorter_held_bytes(held->size);

        if (!held->taken) {
            s->items[held->place].at = to;
            memmove(s->arena.data + to, held, bytes);
            to += bytes;
        }
        at += bytes;
    }
    s->arena.size = to;
    s->taken_bytes = 0;
}

/* Frees the disk space of records that were returned. */
static void sorter_run_punch(Run *run) {
    if (run->read_to - run->punched < RUN_PUNCH_BYTES)
        return;
    (void)fallocate(run->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, run->punched,
                    RUN_PUNCH_BYTES);
    run->punched += RUN_PUNCH_BYTES;
}

/* Reads until the record at `at` is complete; leaves the window empty if there is none. */
static int sorter_run_fill(Run *run) {
    size_t left = run->window.size - run->at, want = sizeof(Held);
    Held held;

    for (;;) {
        uint8_t *to;
        ssize_t n;

        if (left >= sizeof(Held)) {
            memcpy(&held, run->window.data + run->at, sizeof(held));
            want = sorter_held_bytes(held.size);
        }
        if (left >= want && left >= sizeof(Held)) {
            run->time = held.time;
            return 0;
        }
        if (run->at > 0)
            memmove(run->window.data, run->window.data + run->at, left);
        run->at = 0;
        run->window.size = left;
        to = buffer_reserve(&run->window, MAX(want - left, (size_t)RUN_BUFFER_BYTES));
        if (!to)
            return buffer_error(&run->window);
        n = pread(run->fd, to, run->window.allocated - left, run->read_to);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0) {
            run->empty = true;
            return left > 0 ? -EIO : 0;
        }
        buffer_commit(&run->window, (size_t)n);
        run->read_to += n;
        left += (size_t)n;
        sorter_run_punch(run);
    }
}

static int sorter_run_advance(Run *run) {
    Held held;

    memcpy(&held, run->window.data + run->at, sizeof(held));
    run->at += sorter_held_bytes(held.size);
    return sorter_run_fill(run);
}

/* The run with the smallest time, the oldest one if equal; NULL when all are empty. */
static Run *sorter_least_run(PdSorter *s) {
    Run *least = NULL;

    for (unsigned i = 0; i < s->n_runs; i++)
        if (!s->runs[i].empty && (!least || s->runs[i].time < least->time))
            least = &s->runs[i];
    return least;
}

static int sorter_write_held(int fd, Buffer *out, const Held *held) {
    int r = 0;

    buffer_append(out, held, sorter_held_bytes(held->size));
    if (out->size >= RUN_BUFFER_BYTES && buffer_error(out) == 0) {
        r = file_write_all(fd, out->data, out->size);
        buffer_clear(out);
    }
    return r < 0 ? r : buffer_error(out);
}

/* Merges all runs into one. */
static int sorter_merge_runs(PdSorter *s) {
    _cleanup_(buffer_done) Buffer out = {};
    Run *run, merged = {.fd = file_open_unnamed(s->folder)};
    _cleanup_close_ int fd = merged.fd;
    int r;

    if (fd < 0)
        return fd;
    while ((run = sorter_least_run(s))) {
        merged.last = run->time;
        r = sorter_write_held(fd, &out, (const Held *)(run->window.data + run->at));
        if (r == 0)
            r = sorter_run_advance(run);
        if (r < 0)
            return r;
    }
    r = file_write_all(fd, out.data, out.size);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < s->n_runs; i++)
        sorter_run_done(&s->runs[i]);
    s->runs[0] = merged;
    (void)TAKE_FD(fd);
    s->n_runs = 1;
    return sorter_run_fill(&s->runs[0]);
}

/* The newest run if a record with this time may follow it; else a new one. */
static int sorter_run_for(PdSorter *s, uint64_t time, Run **ret) {
    int r, fd;

    if (s->n_runs > 0 && time >= s->runs[s->n_runs - 1].last) {
        *ret = &s->runs[s->n_runs - 1];
        return 0;
    }
    r = s->n_runs == RUNS_MAX ? sorter_merge_runs(s) : 0;
    if (r < 0)
        return r;
    fd = file_open_unnamed(s->folder);
    if (fd < 0)
        return fd;
    s->runs[s->n_runs] = (Run){.fd = fd, .empty = true};
    *ret = &s->runs[s->n_runs++];
    return 0;
}

/* Writes the older half of the arena to a run. */
static int sorter_spill(PdSorter *s) {
    _cleanup_(buffer_done) Buffer out = {};
    uint64_t bytes = s->arena.size / 2;
    Run *run;
    int r;

    sorter_sort_items(s);
    r = sorter_run_for(s, s->items[s->first].time, &run);
    if (r < 0)
        return r;
    s->spilled = true;
    while (s->first < s->n && s->taken_bytes < bytes) {
        Held *held = sorter_held_at(s, &s->items[s->first]);

        r = sorter_write_held(run->fd, &out, held);
        if (r < 0)
            return r;
        run->last = held->time;
        held->taken = true;
        s->taken_bytes += sorter_held_bytes(held->size);
        s->first++;
    }
    r = file_write_all(run->fd, out.data, out.size);
    if (r < 0)
        return r;
    sorter_sort_items(s);
    sorter_compact(s);
    if (!run->empty)
        return 0;
    run->empty = false;
    return sorter_run_fill(run);
}

static int sorter_grow_items(PdSorter *s) {
    size_t n = MAX(s->allocated * 2, (size_t)1024);
    Item *p;

    p = reallocarray(s->items, n, sizeof(*p));
    if (!p)
        return -ENOMEM;
    s->items = p;
    p = reallocarray(s->spare, n, sizeof(*p));
    if (!p)
        return -ENOMEM;
    s->spare = p;
    s->allocated = n;
    return 0;
}

/* The record that was returned last may be dropped only now. */
static int sorter_let_go(PdSorter *s) {
    Run *run = s->last_taken;

    s->last_taken = NULL;
    return run ? sorter_run_advance(run) : 0;
}

static int sorter_make_room(PdSorter *s, uint64_t bytes) {
    while (s->first < s->n && s->arena.size + s->n * 2 * sizeof(Item) + bytes > s->memory_bytes) {
        int r = 0;

        if (s->taken_bytes >= s->arena.size / 2) {
            sorter_sort_items(s);
            sorter_compact(s);
        } else
            r = sorter_spill(s);
        if (r < 0)
            return r;
    }
    if (s->first == s->n) {
        s->first = s->n = 0;
        s->arena.size = 0;
        s->taken_bytes = 0;
        s->unsorted = false;
    }
    return 0;
}

int pd_sorter_add(PdSorter *s, const PdRecord *record, uint64_t time) {
    uint64_t bytes = sorter_held_bytes(record->size);
    Held *held;
    int r = sorter_let_go(s);

    if (r == 0)
        r = sorter_make_room(s, bytes);
    if (r == 0 && s->n == s->allocated)
        r = sorter_grow_items(s);
    if (r < 0)
        return r;
    held = (Held *)buffer_reserve(&s->arena, bytes);
    if (!held)
        return buffer_error(&s->arena);
    *held = (Held){
        .time = time,
        .offset = record->offset,
        .payload = record->payload,
        .type = record->type,
        .size = record->size,
        .file = record->file,
        .misc = record->misc,
        .swap = record->swap,
        .decompressed = record->decompressed,
    };
    memcpy(held + 1, record->data, record->size);
    memset((uint8_t *)(held + 1) + record->size, 0, ALIGN8((uint64_t)record->size) - record->size);
    s->unsorted |= s->n > s->first && s->items[s->n - 1].time > time;
    s->items[s->n++] = (Item){.time = time, .at = s->arena.size};
    buffer_commit(&s->arena, bytes);
    return 0;
}

void pd_sorter_release(PdSorter *s, uint64_t limit) {
    s->released = MAX(s->released, limit);
}

static void sorter_view(const Held *held, PdRecord *ret, uint64_t *ret_time) {
    *ret = (PdRecord){
        .type = held->type,
        .misc = held->misc,
        .swap = held->swap,
        .decompressed = held->decompressed,
        .file = held->file,
        .size = held->size,
        .data = (const uint8_t *)(held + 1),
        .offset = held->offset,
        .payload = held->payload,
    };
    *ret_time = held->time;
}

int pd_sorter_next(PdSorter *s, PdRecord *ret, uint64_t *ret_time) {
    const Item *item;
    Held *held;
    Run *run;
    int r = sorter_let_go(s);

    if (r < 0)
        return r;
    if (s->unsorted)
        sorter_sort_items(s);
    item = s->first < s->n ? &s->items[s->first] : NULL;
    run = sorter_least_run(s);
    if (run && (!item || run->time <= item->time)) {
        if (run->time > s->released)
            return 0;
        sorter_view((const Held *)(run->window.data + run->at), ret, ret_time);
        s->last_taken = run;
        return 1;
    }
    if (!item || item->time > s->released)
        return 0;
    held = sorter_held_at(s, item);
    held->taken = true;
    s->taken_bytes += sorter_held_bytes(held->size);
    s->first++;
    sorter_view(held, ret, ret_time);
    return 1;
}

bool pd_sorter_spilled(const PdSorter *s) {
    return s->spilled;
}
