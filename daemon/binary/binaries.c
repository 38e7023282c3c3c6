/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "binary/binaries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "binary/binary-work.h"
#include "binary/code-map-list.h"
#include "util/clock.h"

/*
 * The way of a file: the watch sees a sample in it; the scanner opens the very file and has
 * profd-elf reduce it, unless the store has its build id; the result waits here until the thread
 * has written what came before; the thread writes it. Nothing waits for any of that. What waits is
 * bounded in bytes, and the scanner asks before it reads a file.
 */

#define TIMER_NS (5 * NS_PER_SECOND)
#define TEND_NS  (60 * NS_PER_SECOND)

enum {
    WAITING_MAX = 1024,
    WAITING_MAX_BYTES = 32 << 20, /* in memory, and one file more */
};

struct Binaries {
    BinariesOptions options;
    BinaryStore *store;
    BinaryWatch *watch;
    Worker *thread;
    LoopSource *timer;
    SymbolsFilter filter;
    BinaryItem *items, **last; /* wait for the thread */
    unsigned n_items;
    _Atomic uint64_t waiting_bytes; /* with those that the thread has */
    uint64_t work_bytes;            /* of those that the thread has */
    BinaryWork work;
    bool is_working, is_on, is_loaded;
    uint64_t tended_ns;
    CodeMapList code_maps;
    BinariesCounts counts;
};

/* -- the thread ------------------------------------------------------------------------------- */

static void binaries_work(Binaries *b);

static void binaries_free_items(BinaryItem *items) {
    for (BinaryItem *item; (item = items);) {
        items = item->next;
        binary_item_free(item);
    }
}

static void binaries_on_worked(void *userdata) {
    Binaries *b = userdata;

    b->counts.failed += b->work.n_failed;
    binaries_free_items(b->work.items);
    b->work = (BinaryWork){};
    b->waiting_bytes -= b->work_bytes;
    b->work_bytes = 0;
    b->is_working = false;
    binaries_work(b);
}

static void binaries_run_work(void *userdata) {
    binary_work_run(&((Binaries *)userdata)->work);
}

/* Hands what waits to the thread, if that is idle. */
static void binaries_work(Binaries *b) {
    uint64_t now_ns = clock_monotonic_ns();
    bool tends = now_ns - b->tended_ns >= TEND_NS || b->tended_ns == 0;

    if (b->is_working || (!b->items && !tends && b->is_loaded))
        return;
    b->work = (BinaryWork){.keeper = b->options.keeper,
                           .store = b->store,
                           .items = b->items,
                           .loads = !b->is_loaded,
                           .tends = tends};
    b->work_bytes = b->waiting_bytes;
    b->items = NULL;
    b->last = &b->items;
    b->n_items = 0;
    b->is_working = true;
    b->is_loaded = true;
    if (tends)
        b->tended_ns = now_ns;
    if (housekeeper_add(b->thread, &(WorkerJob){binaries_run_work, binaries_on_worked, b}, true) <
        0)
        binaries_on_worked(b);
}

static void binaries_put(Binaries *b, const BinaryNew *new) {
    BinaryItem *item = b->n_items < WAITING_MAX ? binary_item_new(new) : NULL;

    if (!item) {
        b->counts.failed++;
        return;
    }
    *b->last = item;
    b->last = &item->next;
    b->n_items++;
    b->waiting_bytes += new->fd >= 0 ? new->bytes : 0;
    binaries_work(b);
}

/* -- files ------------------------------------------------------------------------------------ */

static bool binaries_filter_has(void *userdata, const BuildId *build_id, uid_t owner) {
    Binaries *b = userdata;
    char name[BINARY_NAME_MAX];

    return binary_name_of_id((Bytes){.data = build_id->bytes, .size = build_id->size}, name) < 0 ||
           binary_store_has(b->store, name, owner);
}

static bool binaries_filter_is_full(void *userdata) {
    return ((Binaries *)userdata)->waiting_bytes > WAITING_MAX_BYTES;
}

static void binaries_want_file(void *userdata, const MappedImage *image) {
    Binaries *b = userdata;

    (void)tracker_symbols(b->options.tracker, image);
}

int binaries_on_symbols(Binaries *b, SymbolsAnswer *answer) {
    BinaryNew new = {.kind = answer->is_vdso ? BINARY_VDSO : BINARY_ELF,
                     .owner = answer->owner,
                     .fd = answer->fd,
                     .bytes = answer->bytes,
                     .path = answer->path};
    Bytes id = {.data = answer->build_id.bytes, .size = answer->build_id.size};

    if (!b->is_on || answer->result < 0 || binary_name_of_id(id, new.name) < 0)
        return 0;
    if (answer->fd < 0 && binary_store_knows_path(b->store, new.name, answer->path))
        return 0;
    answer->fd = -1;
    binaries_put(b, &new);
    return 0;
}

/* -- generated code --------------------------------------------------------------------------- */

static int binaries_ask_for_map(Binaries *b, CodeMap *map, const MappedImage *image) {
    int r =
        tracker_code_map(b->options.tracker, image, map->known.source >= 0 ? &map->known : NULL);

    map->is_asked = r == 0;
    return r;
}

static void binaries_want_code(void *userdata, const MappedImage *dump) {
    Binaries *b = userdata;
    CodeMap *map = code_map_list_find(&b->code_maps, dump->pid);
    char name[BINARY_NAME_MAX];

    if (!map)
        map = code_map_list_add(&b->code_maps, dump->pid);
    if (!map || map->is_asked)
        return;
    if (map->known.source >= 0) {
        binary_name_of_map(map->pid, map->start_real_ns, name);
        (void)binary_store_has(b->store, name, 0);
    } else if (map->due_ns <= clock_monotonic_ns())
        (void)binaries_ask_for_map(b, map, dump);
}

int binaries_on_code_map(Binaries *b, CodeMapAnswer *answer) {
    CodeMap *map = code_map_list_find(&b->code_maps, answer->pid);
    bool was_held = map && map->known.source >= 0;
    BinaryNew new = {.kind = BINARY_MAP, .fd = answer->fd, .bytes = answer->bytes};

    if (!map || !b->is_on)
        return 0;
    b->counts.refused += answer->result == -EACCES || answer->result == -EFBIG ||
                         answer->result == -E2BIG || answer->result == -ELOOP ||
                         answer->result == -EXDEV;
    if (code_map_list_answer(map, answer, clock_monotonic_ns())) {
        binary_store_find_map(b->store, map->pid, map->start_real_ns, new.name);
        answer->fd = -1;
        binaries_put(b, &new);
    }
    if (was_held && code_map_list_is_over(map))
        code_map_list_drop(map);
    return 0;
}

/* -- all of it -------------------------------------------------------------------------------- */

static int binaries_on_timer(void *userdata) {
    Binaries *b = userdata;
    uint64_t now_ns = clock_monotonic_ns();
    CodeMap *map;

    for (size_t at = 0; b->is_on && (map = code_map_list_due(&b->code_maps, now_ns, &at));)
        (void)binaries_ask_for_map(b, map, &(MappedImage){.pid = map->pid, .path = ""});
    binaries_work(b);
    return 0;
}

void binaries_configure(Binaries *b, uint64_t limit_bytes) {
    b->is_on = limit_bytes > 0;
    binary_watch_set(b->watch, b->is_on);
    tracker_keep_symbols(b->options.tracker, b->is_on ? &b->filter : NULL);
    if (!b->is_on)
        code_map_list_done(&b->code_maps);
    binaries_tend(b);
}

void binaries_tend(Binaries *b) {
    b->tended_ns = 0;
    binaries_work(b);
}

int binaries_new(const BinariesOptions *options, Binaries **ret) {
    Binaries *b = calloc(1, sizeof(*b));
    BinaryWatchSink sink = {binaries_want_file, binaries_want_code, b};
    int r;

    if (!b)
        return -ENOMEM;
    b->options = *options;
    b->filter = (SymbolsFilter){binaries_filter_has, binaries_filter_is_full, b};
    b->last = &b->items;
    code_map_list_init(&b->code_maps);
    r = binary_store_new(options->store, &b->store);
    if (r == 0)
        r = binary_watch_new(tracker_history(options->tracker), &sink, &b->watch);
    if (r == 0)
        r = housekeeper_new(options->loop, "profd-symbols", &b->thread);
    if (r == 0)
        r = loop_add_timer(options->loop, TIMER_NS, binaries_on_timer, b, &b->timer);
    if (r < 0) {
        binaries_free(b, NULL);
        return r;
    }
    *ret = b;
    return 0;
}

Binaries *binaries_free(Binaries *b, bool *ret_is_over) {
    bool is_over = true;

    if (b) {
        loop_source_free(b->timer);
        is_over = worker_end(b->thread);
        code_map_list_done(&b->code_maps);
    }
    if (ret_is_over)
        *ret_is_over = is_over;
    /* A thread that hangs on a disk still uses the rest, so leak it. */
    if (!b || !is_over)
        return NULL;
    binaries_free_items(b->items);
    binaries_free_items(b->work.items);
    binary_watch_free(b->watch);
    binary_store_free(b->store);
    free(b);
    return NULL;
}

BinaryWatch *binaries_watch(Binaries *b) {
    return b->watch;
}

BinariesCounts binaries_counts(const Binaries *b) {
    BinariesCounts counts = b->counts;

    for (size_t i = 0; i < CODE_MAPS_MAX; i++)
        counts.code_maps += b->code_maps.items[i].known.source >= 0;
    return counts;
}

BinaryStore *binaries_store(Binaries *b) {
    return b->store;
}

Worker *binaries_thread(Binaries *b) {
    return b->thread;
}
