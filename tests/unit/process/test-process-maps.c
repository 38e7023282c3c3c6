/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/maps.h"

#include <errno.h>

#include "test.h"

/* The maps against a plain array of bytes: what was mapped last at an address is what counts. */

enum { SPACE = 4096 };

typedef struct Model {
    uint16_t owner[SPACE]; /* which mapping, 0: none */
    uint64_t pgoff[SPACE]; /* of the address itself */
} Model;

static uint64_t random_state = 88172645463325252;

static uint64_t random_below(uint64_t n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % n;
}

static ProcessStrings strings_of(uint64_t limit_bytes) {
    return (ProcessStrings){.budget = {.limit_bytes = limit_bytes}};
}

static void strings_done(ProcessStrings *s) {
    images_done(s);
    names_done(&s->names, &s->budget);
}

static ProcessImage *image_of(ProcessStrings *s, uint16_t number) {
    PdMmap mmap = {.inode = number, .filename = {.data = (const uint8_t *)"x", .size = 1}};

    return images_get(s, &mmap, mmap.filename, false);
}

static int model_map(ProcessStrings *s, ProcessMaps **maps, Model *model, uint16_t number) {
    uint64_t start = random_below(SPACE - 1), length = 1 + random_below(random_below(8) ? 40 : 900);
    ProcessMapping m = {.start = start, .pgoff = random_below(1 << 20)};

    m.end = start + MIN(length, SPACE - start);
    m.image = image_of(s, number);
    if (!m.image)
        return -ENOMEM;
    for (uint64_t i = m.start; i < m.end; i++) {
        model->owner[i] = number;
        model->pgoff[i] = m.pgoff + (i - m.start);
    }
    return maps_insert(s, maps, &m);
}

static bool agree(const ProcessMaps *maps, const Model *model) {
    uint64_t last_end = 0;
    size_t n = 0, at = 0;
    const ProcessMapping *m;

    for (uint64_t i = 0; i < SPACE; i++) {
        m = maps_find(maps, i);
        if (!m != (model->owner[i] == 0))
            return false;
        if (m &&
            (m->image->inode != model->owner[i] || m->pgoff + (i - m->start) != model->pgoff[i]))
            return false;
    }
    for (; (m = maps_next(maps, &at)); n++, last_end = m->end)
        if (m->start < last_end || m->start >= m->end)
            return false;
    return n == maps_count(maps);
}

TEST(of_many_overlapping_mappings_the_last_ones_remain) {
    ProcessStrings s = strings_of(1 << 20);
    ProcessMaps *maps = maps_new(&s);
    static Model model;

    for (uint16_t i = 1; i < 6000; i++) {
        CHECK_OK(model_map(&s, &maps, &model, i));
        if (i % 64 == 0)
            CHECK(agree(maps, &model));
    }
    maps_put(&s, maps);
    CHECK_EQ(s.images.n, 0U);
    strings_done(&s);
    CHECK_EQ(s.budget.used_bytes, 0U);
}

TEST(after_a_fork_changes_of_one_side_do_not_affect_the_other) {
    ProcessStrings s = strings_of(4 << 20);
    enum { FORKS = 40 };
    ProcessMaps *maps[FORKS] = {maps_new(&s)};
    static Model models[FORKS];
    uint16_t number = 1;

    for (size_t n = 1; n <= FORKS; n++) {
        size_t parent = random_below(n);

        for (unsigned i = 0; i < 60; i++) {
            size_t k = random_below(n);

            CHECK_OK(model_map(&s, &maps[k], &models[k], number++));
        }
        if (n < FORKS) {
            maps[n] = maps_ref(maps[parent]);
            models[n] = models[parent];
        }
    }
    for (size_t n = 0; n < FORKS; n++)
        CHECK(agree(maps[n], &models[n]));
    for (size_t n = 0; n < FORKS; n++)
        maps_put(&s, maps[n]);
    CHECK_EQ(s.images.n, 0U);
    strings_done(&s);
    CHECK_EQ(s.budget.used_bytes, 0U);
}

TEST(removing_a_range_splits_the_mapping_around_it) {
    ProcessStrings s = strings_of(1 << 20);
    ProcessMaps *maps = maps_new(&s);
    ProcessMapping m = {.start = 100, .end = 200, .pgoff = 1000, .image = image_of(&s, 1)};

    CHECK_OK(maps_insert(&s, &maps, &m));
    CHECK_OK(maps_remove(&s, &maps, 120, 130));
    CHECK_EQ(maps_count(maps), 2U);
    CHECK(!maps_find(maps, 99) && !maps_find(maps, 120) && !maps_find(maps, 129));
    CHECK_EQ(maps_find(maps, 119)->pgoff, 1000U);
    CHECK_EQ(maps_find(maps, 130)->pgoff, 1030U);
    CHECK(!maps_find(maps, 200));
    maps_put(&s, maps);
    strings_done(&s);
}

TEST(mappings_are_bounded_in_number) {
    ProcessStrings s = strings_of(64 << 20);
    ProcessMaps *maps = maps_new(&s);
    int r = 0;

    for (uint64_t i = 0; i < PROCESS_MAPS_MAX + 10; i++) {
        ProcessMapping m = {.start = i * 2, .end = i * 2 + 1, .image = image_of(&s, 1)};

        r = maps_insert(&s, &maps, &m);
        CHECK_EQ(r, i < PROCESS_MAPS_MAX ? 0 : -E2BIG);
    }
    CHECK_EQ(maps_count(maps), (size_t)PROCESS_MAPS_MAX);
    CHECK(maps_find(maps, (PROCESS_MAPS_MAX - 1) * 2));
    maps_put(&s, maps);
    CHECK_EQ(s.images.n, 0U);
    strings_done(&s);
    CHECK_EQ(s.budget.used_bytes, 0U);
}

TEST(out_of_memory_drops_mappings_and_leaks_no_reference) {
    for (uint64_t limit = 600; limit < 12000; limit += 97) {
        ProcessStrings s = strings_of(limit);
        ProcessMaps *maps = maps_new(&s), *other;
        Model model = {};

        if (!maps)
            continue;
        other = maps_ref(maps);
        for (uint16_t i = 1; i < 300; i++)
            (void)model_map(&s, i % 3 ? &maps : &other, &model, i);
        CHECK(s.budget.used_bytes <= limit);
        maps_put(&s, maps);
        maps_put(&s, other);
        CHECK_EQ(s.images.n, 0U);
        strings_done(&s);
        CHECK_EQ(s.budget.used_bytes, 0U);
    }
}

TEST_MAIN()
