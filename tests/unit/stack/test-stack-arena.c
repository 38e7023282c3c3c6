/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stack/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perfdata/event/format.h"
#include "util/buffer.h"
#include "util/macro.h"

#include "test.h"

/* What waits for the writer, across recorders: in order, in one piece, and never believed. */

enum { SIZE = 4096, LARGE = 4 << 20, ENDS = 16 };

static uint8_t *map_memory(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        abort();
    return memory;
}

static void put_record(Buffer *out, uint16_t size, uint64_t number) {
    size_t at = out->size;

    buffer_zero(out, size);
    store_u32(out->data + at, PD_RECORD_SAMPLE, false);
    store_u16(out->data + at + 6, size, false);
    store_u64(out->data + at + 8, number, false);
}

/* One record of this many bytes, which has a number in it. */
static bool append(Arena *arena, unsigned cpu, uint16_t size, uint64_t number) {
    _cleanup_(buffer_done) Buffer record = {};
    Bytes lies;

    put_record(&record, size, number);
    lies = arena_append(arena, cpu, buffer_bytes(&record));
    return lies.size == size && memcmp(lies.data, record.data, size) == 0;
}

typedef struct Seen {
    uint64_t numbers[512];
    unsigned cpus[512];
    size_t n;
} Seen;

static int see(void *userdata, unsigned cpu, Bytes records) {
    Seen *seen = userdata;

    if (seen->n == ARRAY_SIZE(seen->numbers))
        return -ENOBUFS;
    seen->cpus[seen->n] = cpu;
    seen->numbers[seen->n++] = load_u64(records.data + 8, false);
    return 0;
}

/* Numbers from `first` up to but not including `end`, in order. */
static bool holds(const Arena *arena, uint64_t first, uint64_t end) {
    Seen seen = {};

    if (arena_each(arena, see, &seen) < 0 || seen.n != end - first)
        return false;
    for (size_t i = 0; i < seen.n; i++)
        if (seen.numbers[i] != first + i)
            return false;
    return true;
}

/* The same for the next recorder. */
static bool holds_for_next(uint8_t *memory, size_t size, uint64_t first, uint64_t end) {
    Arena next;

    return arena_adopt(&next, memory, size) == 0 && holds(&next, first, end);
}

TEST(records_lie_in_order_until_their_sweep_is_written) {
    uint8_t *memory = map_memory(SIZE);
    Seen seen = {};
    Arena arena;

    arena_init(&arena, memory, SIZE);
    CHECK(arena_is_empty(&arena));
    for (uint64_t i = 0; i < 3; i++)
        CHECK(append(&arena, (unsigned)i + 7, 64, i));
    arena_note_sweep(&arena, 1);
    CHECK(append(&arena, 1, 128, 3));
    arena_note_sweep(&arena, 2);
    CHECK(holds(&arena, 0, 4));
    CHECK_OK(arena_each(&arena, see, &seen));
    CHECK_EQ(seen.cpus[2], 9U);
    CHECK_EQ(seen.cpus[3], 1U);
    arena_written(&arena, 0);
    CHECK(holds(&arena, 0, 4));
    arena_written(&arena, 1);
    CHECK(holds(&arena, 3, 4));
    CHECK(holds_for_next(memory, SIZE, 3, 4));
    arena_written(&arena, 2);
    CHECK(arena_is_empty(&arena));
    CHECK(holds_for_next(memory, SIZE, 0, 0));
    munmap(memory, SIZE);
}

TEST(an_arena_holds_much_from_a_quarter_on_also_where_it_wraps) {
    uint8_t *memory = map_memory(SIZE);
    uint64_t n = 0;
    Arena arena;

    arena_init(&arena, memory, SIZE);
    CHECK(append(&arena, 1, 64, n++));
    CHECK(!arena_holds_much(&arena));
    for (unsigned sweep = 1; arena.end >= arena.begin; sweep++) {
        arena_note_sweep(&arena, sweep);
        CHECK(append(&arena, 1, 64, n++));
        arena_written(&arena, sweep);
        CHECK(!arena_holds_much(&arena));
    }
    while (append(&arena, 1, 64, n++))
        ;
    CHECK(arena_holds_much(&arena));
    munmap(memory, SIZE);
}

TEST(a_reader_that_fails_ends_the_walk) {
    uint8_t *memory = map_memory(SIZE);
    Seen seen = {.n = ARRAY_SIZE(seen.numbers)};
    Arena arena;

    arena_init(&arena, memory, SIZE);
    CHECK(append(&arena, 0, 64, 0));
    CHECK_EQ(arena_each(&arena, see, &seen), -ENOBUFS);
    munmap(memory, SIZE);
}

/* Sizes that fit the memory now and then exactly, with up to three sweeps that wait. */
TEST(entries_wrap_at_the_end_of_the_memory_and_stay_in_one_piece) {
    uint8_t *memory = map_memory(SIZE);
    uint64_t number = 0, ends[4] = {};
    unsigned seed = 1;
    Arena arena;

    arena_init(&arena, memory, SIZE);
    for (uint64_t sweep = 1; sweep < 5000; sweep++) {
        for (unsigned i = (unsigned)rand_r(&seed) % 4; i > 0; i--)
            if (append(&arena, 0, (uint16_t)(16 + (unsigned)rand_r(&seed) % 60 * 8), number))
                number++;
        arena_note_sweep(&arena, sweep);
        ends[sweep % 4] = number;
        if (sweep > 3)
            arena_written(&arena, sweep - 3);
        if (!holds(&arena, ends[(sweep + 1) % 4], number) ||
            !holds_for_next(memory, SIZE, ends[(sweep + 1) % 4], number))
            CHECK_EQ(sweep, 0ULL);
    }
    CHECK(number > 5000);
    munmap(memory, SIZE);
}

TEST(a_full_arena_takes_nothing_and_loses_nothing) {
    uint8_t *memory = map_memory(SIZE);
    uint64_t number = 0;
    Arena arena;

    arena_init(&arena, memory, SIZE);
    CHECK(!append(&arena, 0, SIZE, 0));
    while (append(&arena, 0, 120, number))
        number++;
    CHECK(number == (SIZE - ARENA_HEADER_BYTES) / 128);
    CHECK(holds(&arena, 0, number));
    CHECK(holds_for_next(memory, SIZE, 0, number));
    arena_note_sweep(&arena, 1);
    arena_written(&arena, 1);
    CHECK(append(&arena, 0, 120, number));
    CHECK(holds(&arena, number, number + 1));
    munmap(memory, SIZE);
}

TEST(without_memory_there_is_no_space) {
    Arena arena = {};

    CHECK(!append(&arena, 0, 64, 0));
    CHECK(arena_is_empty(&arena));
    arena_note_sweep(&arena, 1);
    arena_written(&arena, 1);
}

TEST(a_writer_that_is_far_behind_frees_nothing_too_early) {
    uint8_t *memory = map_memory(SIZE);
    Arena arena;

    arena_init(&arena, memory, SIZE);
    for (uint64_t sweep = 1; sweep <= 2 * ARENA_MARKS; sweep++) {
        CHECK(append(&arena, 0, 64, sweep));
        arena_note_sweep(&arena, sweep);
    }
    arena_written(&arena, 3);
    CHECK(holds(&arena, 4, 2 * ARENA_MARKS + 1));
    arena_written(&arena, 2 * ARENA_MARKS - 1);
    CHECK(holds(&arena, ARENA_MARKS, 2 * ARENA_MARKS + 1));
    arena_written(&arena, 2 * ARENA_MARKS);
    CHECK(arena_is_empty(&arena));
    munmap(memory, SIZE);
}

/* A sweep that brought nothing ends where the arena begins again. */
TEST(sweeps_without_samples_keep_what_comes_after_them) {
    uint8_t *memory = map_memory(SIZE);
    Arena arena;

    arena_init(&arena, memory, SIZE);
    CHECK(append(&arena, 0, 64, 0));
    arena_note_sweep(&arena, 1);
    arena_note_sweep(&arena, 2);
    arena_written(&arena, 1);
    CHECK(append(&arena, 0, 64, 1));
    arena_note_sweep(&arena, 3);
    arena_written(&arena, 2);
    CHECK(holds(&arena, 1, 2));
    arena_written(&arena, 3);
    CHECK(arena_is_empty(&arena));
    munmap(memory, SIZE);
}

static size_t resident(uint8_t *memory, size_t size) {
    size_t page = (size_t)getpagesize(), n = 0;
    unsigned char pages[LARGE / 4096];

    if (mincore(memory, size, pages) < 0)
        return 0;
    for (size_t i = 0; i < size / page; i++)
        n += pages[i] & 1;
    return n * page;
}

TEST(an_empty_arena_gives_its_memory_back) {
    uint8_t *memory = map_memory(LARGE);
    uint64_t number = 0;
    Arena arena;

    arena_init(&arena, memory, LARGE);
    while (append(&arena, 0, 4096, number))
        number++;
    arena_note_sweep(&arena, 1);
    CHECK(resident(memory, LARGE) > LARGE / 2);
    arena_written(&arena, 1);
    CHECK(resident(memory, LARGE) <= LARGE / 4);
    CHECK(append(&arena, 0, 4096, 0));
    CHECK(holds_for_next(memory, LARGE, 0, 1));
    munmap(memory, LARGE);
}

/* At any moment of an append and of a release the next recorder finds all that was reported as
 * committed, and nothing torn. */
TEST(what_a_killed_recorder_had_committed_is_found) {
    for (unsigned round = 0; round < 50; round++) {
        uint8_t *memory = map_memory(SIZE), *reported = map_memory(SIZE);
        Seen seen = {};
        Arena next;
        pid_t child = fork();

        if (child == 0) {
            Arena arena;

            arena_init(&arena, memory, SIZE);
            for (uint64_t i = 1;; i++) {
                if (append(&arena, 0, (uint16_t)(16 + i % 40 * 8), i))
                    __atomic_store_n((uint64_t *)(void *)reported, i, __ATOMIC_RELEASE);
                else
                    _exit(1);
                arena_note_sweep(&arena, i);
                arena_written(&arena, i > 3 ? i - 3 : 0);
            }
        }
        while (__atomic_load_n((uint64_t *)(void *)reported, __ATOMIC_ACQUIRE) < 1 + round * 100)
            ;
        CHECK_EQ(kill(child, SIGKILL), 0);
        CHECK_EQ(waitpid(child, NULL, 0), child);
        CHECK_OK(arena_adopt(&next, memory, SIZE));
        CHECK_OK(arena_each(&next, see, &seen));
        CHECK(seen.n >= 3 || seen.n == load_u64(reported, false));
        for (size_t i = 1; i < seen.n; i++)
            CHECK_EQ(seen.numbers[i], seen.numbers[i - 1] + 1);
        CHECK(seen.numbers[seen.n - 1] - load_u64(reported, false) <= 1);
        munmap(memory, SIZE);
        munmap(reported, SIZE);
    }
}

static void set_ends(uint8_t *memory, uint64_t begin, uint64_t end) {
    store_u64(memory + ENDS, end / 8 << 32 | begin / 8, false);
}

/* Two entries of 64 bytes, the first at 0. */
static uint8_t *make_arena(void) {
    uint8_t *memory = map_memory(SIZE);
    Arena arena;

    arena_init(&arena, memory, SIZE);
    if (!append(&arena, 0, 56, 0) || !append(&arena, 0, 56, 1))
        abort();
    return memory;
}

/* Refused, and empty afterwards. */
static bool is_refused(uint8_t *memory) {
    Arena arena;
    bool refused = arena_adopt(&arena, memory, SIZE) == -EBADMSG && arena_is_empty(&arena) &&
                   append(&arena, 0, 64, 0) && holds_for_next(memory, SIZE, 0, 1);

    munmap(memory, SIZE);
    return refused;
}

TEST(new_memory_is_an_empty_arena) {
    uint8_t *memory = map_memory(SIZE);
    Arena arena;

    CHECK_OK(arena_adopt(&arena, memory, SIZE));
    CHECK(append(&arena, 0, 64, 0));
    CHECK(holds_for_next(memory, SIZE, 0, 1));
    munmap(memory, SIZE);
}

TEST(memory_that_is_no_arena_is_refused) {
    uint8_t *memory = make_arena();

    memory[0] ^= 1;
    CHECK(is_refused(memory));
    memory = make_arena();
    store_u64(memory + 8, 2 * SIZE, false);
    CHECK(is_refused(memory));
}

TEST(ends_outside_of_the_memory_or_of_an_entry_are_refused) {
    static const uint64_t ends[][2] = {
        {0, SIZE}, {SIZE, 0}, {0, SIZE - 56},  {8, 128},        {0, 120}, {0, 64 + 8},
        {128, 0},  {64, 8},   {0, 1ULL << 34}, {1ULL << 34, 0}, {56, 64}, {SIZE - 128, 64}};

    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        uint8_t *memory = make_arena();

        /* Where the end of the memory comes into it, what lies there is no entry. */
        memset(memory + SIZE - 64, 0xee, 64);
        set_ends(memory, ends[i][0], ends[i][1]);
        CHECK(is_refused(memory));
    }
}

TEST(sizes_and_records_that_make_no_sense_are_refused) {
    static const struct {
        size_t at; /* in the memory */
        uint32_t value;
    } rows[] = {{64, 0},
                {64, 57},
                {64, 64},
                {64, UINT32_MAX},
                {64, 128},
                {64, 120},
                {72 + 4, 0},
                {68, UINT32_MAX},
                {72 + 4, 4U << 16},
                {72 + 4, 64U << 16},
                {72 + 4, 60U << 16}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        uint8_t *memory = make_arena();

        store_u32(memory + rows[i].at, rows[i].value, false);
        CHECK(is_refused(memory));
    }
}

/* Whatever the bytes are, the walk ends and stays in the memory: behind it lies nothing. */
TEST(arbitrary_bytes_do_no_harm) {
    uint8_t *memory = map_memory(2 * SIZE);
    unsigned seed = 1;

    CHECK_EQ(munmap(memory + SIZE, SIZE), 0);
    for (unsigned round = 0; round < 20000; round++) {
        Seen seen = {};
        Arena arena;

        arena_init(&arena, memory, SIZE);
        for (uint64_t i = 0; i < 40; i++) {
            (void)append(&arena, 0, (uint16_t)(16 + (unsigned)rand_r(&seed) % 20 * 8), i);
            arena_note_sweep(&arena, i);
            arena_written(&arena, i > 10 ? i - 10 : 0);
        }
        for (unsigned i = 0; i < 3; i++)
            memory[ENDS + (unsigned)rand_r(&seed) % (SIZE - ENDS)] = (uint8_t)rand_r(&seed);
        if (round % 2)
            memory[ENDS + (unsigned)rand_r(&seed) % 8] = (uint8_t)rand_r(&seed);
        if (arena_adopt(&arena, memory, SIZE) == 0)
            CHECK_OK(arena_each(&arena, see, &seen));
        else
            CHECK(arena_is_empty(&arena));
    }
    munmap(memory, SIZE);
}

TEST_MAIN()
