/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/table/name-build.h"

#include <errno.h>
#include <stdlib.h>

#include "symbol/table/name-choice.h"
#include "symbol/table/name-image.h"
#include "util/array.h"
#include "util/macro.h"

/*
 * Symbols overlap, have no size, or share an address. They are sorted by their start; of equal
 * starts one stays, symbols without a size get one, and a sweep over all starts and ends makes rows
 * without overlaps. The symbols that hold the place of the sweep are in a heap whose top names it.
 */

enum { PAGE = 4096 };

/* The symbols that hold the place of the sweep, as numbers of entries. */
typedef struct NameHeap {
    const NameEntry *entries;
    NameOrder order;
    uint32_t *items;
    size_t n;
} NameHeap;

void name_build_init(NameBuild *build, NameOrder order) {
    *build = (NameBuild){.order = order};
    buffer_zero(&build->strings, 1);
}

void name_build_done(NameBuild *build) {
    free(build->entries);
    buffer_done(&build->strings);
}

void name_build_clear(NameBuild *build) {
    NameOrder order = build->order;

    name_build_done(build);
    name_build_init(build, order);
}

int name_build_add(NameBuild *build, const NameSymbol *symbol) {
    uint64_t end = symbol->address + symbol->size;
    size_t at = build->strings.size;
    NameEntry *e;

    if (symbol->name.size == 0 || (symbol->size == 0 && build->order == NAME_BY_TIME))
        return 0;
    if (build->n >= NAME_BUILD_SYMBOLS_MAX ||
        symbol->name.size >= NAME_BUILD_STRINGS_MAX - build->strings.size)
        return -E2BIG;
    buffer_append(&build->strings, symbol->name.data, symbol->name.size);
    buffer_zero(&build->strings, 1);
    if (buffer_error(&build->strings) < 0)
        return -ENOMEM;
    e = array_grow(&build->entries, &build->n);
    if (!e)
        return -ENOMEM;
    *e = (NameEntry){.start = symbol->address,
                     .end = end < symbol->address ? UINT64_MAX : end,
                     .name = (uint32_t)at,
                     .name_size = (uint32_t)symbol->name.size,
                     .number = (uint32_t)build->n - 1,
                     .binding = (uint8_t)symbol->binding};
    return 0;
}

void name_build_segment(NameBuild *build, const NameSegment *segment) {
    if (build->n_segments < NAME_BUILD_SEGMENTS_MAX)
        build->segments[build->n_segments++] = *segment;
}

bool name_build_find(const NameBuild *build, const char *name, uint64_t *ret) {
    size_t size = strlen(name);

    for (size_t i = 0; i < build->n; i++) {
        const NameEntry *e = &build->entries[i];

        if (e->name_size == size && memcmp(build->strings.data + e->name, name, size) == 0) {
            *ret = e->start;
            return true;
        }
    }
    return false;
}

void name_build_rebase(NameBuild *build, uint64_t base) {
    size_t n = 0;

    for (size_t i = 0; i < build->n; i++) {
        NameEntry e = build->entries[i];

        if (e.start < base)
            continue;
        e.start -= base;
        e.end -= base;
        build->entries[n++] = e;
    }
    build->n = n;
}

static int name_build_compare(const void *a, const void *b) {
    const NameEntry *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Leaves one symbol for each start. */
static void name_build_unique(NameBuild *build) {
    size_t n = 0;

    for (size_t i = 0; i < build->n; i++) {
        NameEntry *e = &build->entries[i];

        if (n == 0 || build->entries[n - 1].start != e->start)
            build->entries[n++] = *e;
        else if (name_choice_second(&build->strings, &build->entries[n - 1], e))
            build->entries[n - 1] = *e;
    }
    build->n = n;
}

/* Of a symbol without a size nobody knows where it ends: the next one begins there at the latest.
 */
static void name_build_extend(NameBuild *build) {
    for (size_t i = 0; i < build->n; i++) {
        NameEntry *e = &build->entries[i];
        uint64_t page = e->start <= UINT64_MAX - 2 * PAGE
                            ? (e->start + PAGE - 1) / PAGE * PAGE + PAGE
                            : UINT64_MAX;

        if (e->end == e->start)
            e->end = i + 1 < build->n ? build->entries[i + 1].start : page;
    }
}

/* -- the sweep -------------------------------------------------------------------------------- */

static bool name_heap_above(const NameHeap *heap, uint32_t a, uint32_t b) {
    return heap->order == NAME_BY_START ? a > b : heap->entries[a].number > heap->entries[b].number;
}

static void name_heap_push(NameHeap *heap, uint32_t item) {
    size_t at = heap->n++;

    for (; at > 0 && name_heap_above(heap, item, heap->items[(at - 1) / 2]); at = (at - 1) / 2)
        heap->items[at] = heap->items[(at - 1) / 2];
    heap->items[at] = item;
}

static void name_heap_pop(NameHeap *heap) {
    uint32_t last = heap->items[--heap->n];
    size_t at = 0;

    for (size_t child; (child = 2 * at + 1) < heap->n; at = child) {
        if (child + 1 < heap->n &&
            name_heap_above(heap, heap->items[child + 1], heap->items[child]))
            child++;
        if (!name_heap_above(heap, heap->items[child], last))
            break;
        heap->items[at] = heap->items[child];
    }
    heap->items[at] = last;
}

static const NameEntry *name_heap_top(const NameHeap *heap) {
    return heap->n > 0 ? &heap->entries[heap->items[0]] : NULL;
}

static uint64_t name_build_sweep(const NameBuild *build, NameHeap *heap, Buffer *rows) {
    const NameEntry *entries = build->entries, *top, *last = NULL;
    uint64_t n = 0, place;

    for (size_t i = 0; i < build->n || heap->n > 0;) {
        top = name_heap_top(heap);
        place = i < build->n ? entries[i].start : UINT64_MAX;
        if (top && top->end < place)
            place = top->end;
        for (; i < build->n && entries[i].start == place; i++)
            name_heap_push(heap, (uint32_t)i);
        while ((top = name_heap_top(heap)) && top->end <= place)
            name_heap_pop(heap);
        if (top != last) {
            NameRow row = {
                .address = place, .start = top ? top->start : place, .name = top ? top->name : 0};

            buffer_append(rows, &row, sizeof(row));
            n++;
        }
        last = top;
    }
    return n;
}

int name_build_image(NameBuild *build, Buffer *ret) {
    NameImage header = {.magic = NAME_IMAGE_MAGIC,
                        .n_segments = build->n_segments,
                        .strings_size = build->strings.size};
    _cleanup_free_ uint32_t *items = NULL;
    NameHeap heap;

    if (build->n > 0)
        qsort(build->entries, build->n, sizeof(*build->entries), name_build_compare);
    if (build->order == NAME_BY_START) {
        name_build_unique(build);
        name_build_extend(build);
    }
    items = calloc(build->n + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    heap = (NameHeap){.entries = build->entries, .order = build->order, .items = items};
    buffer_append(ret, &header, sizeof(header));
    header.n_rows = name_build_sweep(build, &heap, ret);
    buffer_append(ret, build->segments, build->n_segments * sizeof(*build->segments));
    buffer_append(ret, build->strings.data, build->strings.size);
    if (buffer_error(ret) < 0 || buffer_error(&build->strings) < 0)
        return -ENOMEM;
    memcpy(ret->data, &header, sizeof(header));
    return 0;
}
