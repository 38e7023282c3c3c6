/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stack/arena.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perfdata/event/record-view.h"
#include "util/macro.h"

/*
 * A ring of entries, each with the records of one CPU in one piece. One word of the header has both
 * ends, so that a recorder which is killed at any moment leaves either the old ends or the new
 * ones: an entry is there when the word says so. Nothing else of the header changes.
 *
 * An entry that does not fit before the end of the memory lies at its begin; where space is left
 * behind the last entry, a filler says so. `end` never catches up with `begin` from behind, so
 * equal ends mean an empty arena. An empty arena begins at the front again and gives its pages
 * back.
 *
 * What an earlier recorder left is as hostile as any input: every position, size and record is
 * checked before it is used, each time.
 */

#define ARENA_MAGIC 0x31414e4552415044ULL

#define FILLER UINT32_MAX /* instead of a CPU */

enum {
    KEPT_BYTES = 1 << 20, /* of an empty arena */
    MUCH_SHARE = 4,
};

/* The beginning of the memory. */
typedef struct ArenaHeader {
    uint64_t magic, size;
    uint64_t ends; /* begin and end in words of 8 bytes, end in the upper half */
} ArenaHeader;

typedef struct ArenaEntry {
    uint32_t size; /* of the records, which follow */
    uint32_t cpu;
} ArenaEntry;

static_assert(sizeof(ArenaHeader) <= ARENA_HEADER_BYTES, "the header fits");

static uint8_t *arena_at(const Arena *arena, uint64_t at) {
    return arena->memory + ARENA_HEADER_BYTES + at;
}

/* The entries before `end` are complete in memory when the next recorder sees the new ends. */
static void arena_publish(const Arena *arena) {
    ArenaHeader *header = (ArenaHeader *)(void *)arena->memory;

    __atomic_store_n(&header->ends, arena->end / 8 << 32 | arena->begin / 8, __ATOMIC_RELEASE);
}

void arena_init(Arena *arena, void *memory, size_t size) {
    ArenaHeader *header = memory;

    assert(size > ARENA_HEADER_BYTES && size % 8 == 0 && size / 8 <= UINT32_MAX);
    *arena = (Arena){.memory = memory, .size = size - ARENA_HEADER_BYTES};
    header->magic = 0;
    arena_publish(arena);
    header->size = size;
    __atomic_store_n(&header->magic, ARENA_MAGIC, __ATOMIC_RELEASE);
}

bool arena_is_empty(const Arena *arena) {
    return arena->begin == arena->end;
}

bool arena_holds_much(const Arena *arena) {
    uint64_t used = arena->end - arena->begin;

    return (arena->end < arena->begin ? used + arena->size : used) > arena->size / MUCH_SHARE;
}

/* Reads the entry at *at and moves *at behind it. Fillers have no records. */
static int arena_read(const Arena *arena, uint64_t *at, bool *wrapped, unsigned *ret_cpu,
                      Bytes *ret) {
    uint64_t limit = arena->begin <= arena->end || *wrapped ? arena->end : arena->size;
    uint32_t size, cpu;

    *ret = (Bytes){};
    if (*at == limit && limit != arena->end) {
        *wrapped = true;
        *at = 0;
        return 0;
    }
    if (*at > limit || limit - *at < sizeof(ArenaEntry))
        return -EBADMSG;
    size = load_u32(arena_at(arena, *at), false);
    cpu = load_u32(arena_at(arena, *at) + sizeof(uint32_t), false);
    if (cpu == FILLER) {
        if (limit == arena->end)
            return -EBADMSG;
        *at = limit;
        return 0;
    }
    if (size == 0 || size % 8 != 0 || size > limit - *at - sizeof(ArenaEntry))
        return -EBADMSG;
    *ret = (Bytes){.data = arena_at(arena, *at) + sizeof(ArenaEntry), .size = size};
    *ret_cpu = cpu;
    *at += sizeof(ArenaEntry) + size;
    return 0;
}

static bool arena_holds_records(Bytes bytes) {
    PdRecord record;

    while (pd_records_next(&bytes, &record))
        ;
    return bytes.size == 0;
}

int arena_each(const Arena *arena, ArenaReader fn, void *userdata) {
    uint64_t at = arena->begin;
    bool wrapped = false;
    int r = 0;

    while (r == 0 && at != arena->end) {
        unsigned cpu = 0;
        Bytes records;

        r = arena_read(arena, &at, &wrapped, &cpu, &records);
        if (r == 0 && !arena_holds_records(records))
            r = -EBADMSG;
        if (r == 0 && records.size > 0)
            r = fn(userdata, cpu, records);
    }
    return r;
}

static int arena_accept(void *userdata _unused_, unsigned cpu _unused_, Bytes records _unused_) {
    return 0;
}

static int arena_find(Arena *arena, void *memory, size_t size) {
    const ArenaHeader *header = memory;
    uint64_t ends = __atomic_load_n(&header->ends, __ATOMIC_ACQUIRE);

    *arena = (Arena){.memory = memory, .size = size - ARENA_HEADER_BYTES};
    arena->begin = (ends & UINT32_MAX) * 8;
    arena->end = (ends >> 32) * 8;
    arena->touched = arena->size;
    /* New memory: nobody has begun here. */
    if (header->magic == 0 && header->size == 0 && ends == 0)
        return 0;
    if (header->magic != ARENA_MAGIC || header->size != size || arena->begin > arena->size ||
        arena->end > arena->size)
        return -EBADMSG;
    return arena_each(arena, arena_accept, NULL);
}

int arena_adopt(Arena *arena, void *memory, size_t size) {
    int r = arena_find(arena, memory, size);

    if (r < 0 || arena_is_empty(arena))
        arena_init(arena, memory, size);
    return r;
}

/* Where an entry of n bytes may begin; UINT64_MAX: there is no space. */
static uint64_t arena_find_space(const Arena *arena, uint64_t n) {
    if (arena->begin > arena->end)
        return n < arena->begin - arena->end ? arena->end : UINT64_MAX;
    if (n <= arena->size - arena->end)
        return arena->end;
    return n < arena->begin ? 0 : UINT64_MAX;
}

static void arena_put_entry(const Arena *arena, uint64_t at, uint32_t size, uint32_t cpu) {
    store_u32(arena_at(arena, at), size, false);
    store_u32(arena_at(arena, at) + sizeof(uint32_t), cpu, false);
}

Bytes arena_append(Arena *arena, unsigned cpu, Bytes records) {
    uint64_t n = sizeof(ArenaEntry) + records.size, at;
    uint8_t *to;

    assert(cpu != FILLER && records.size % 8 == 0);
    at = arena->memory && records.size > 0 && records.size <= arena->size
             ? arena_find_space(arena, n)
             : UINT64_MAX;
    if (at == UINT64_MAX)
        return (Bytes){};
    if (at != arena->end && arena->end < arena->size)
        arena_put_entry(arena, arena->end, 0, FILLER);
    arena_put_entry(arena, at, (uint32_t)records.size, cpu);
    to = arena_at(arena, at) + sizeof(ArenaEntry);
    memcpy(to, records.data, records.size);
    arena->end = at + n;
    arena->touched = MAX(arena->touched, arena->end);
    arena_publish(arena);
    return (Bytes){.data = to, .size = records.size};
}

/* When the writer is slow, the newest sweeps share a mark: the older of them then counts as written
 * only together with the newer one. */
void arena_note_sweep(Arena *arena, uint64_t sweep) {
    size_t i = MIN(arena->n_marks, (size_t)ARENA_MARKS - 1);

    if (!arena->memory)
        return;
    arena->marks[i].sweep = sweep;
    arena->marks[i].end = arena->end;
    arena->n_marks = i + 1;
}

/* All marks that are left are where it ended. */
static void arena_start_over(Arena *arena) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), kept = MAX(page, (size_t)KEPT_BYTES),
           size = arena->size + ARENA_HEADER_BYTES;

    arena->begin = arena->end = 0;
    for (size_t i = 0; i < arena->n_marks; i++)
        arena->marks[i].end = 0;
    arena_publish(arena);
    if (arena->touched > kept && size > kept)
        (void)madvise(arena->memory + kept, size - kept, MADV_REMOVE);
    arena->touched = 0;
}

void arena_written(Arena *arena, uint64_t sweep) {
    size_t n = 0;

    while (n < arena->n_marks && arena->marks[n].sweep <= sweep)
        n++;
    if (n == 0)
        return;
    arena->begin = arena->marks[n - 1].end;
    arena->n_marks -= n;
    memmove(arena->marks, arena->marks + n, arena->n_marks * sizeof(*arena->marks));
    if (arena_is_empty(arena))
        arena_start_over(arena);
    else
        arena_publish(arena);
}
