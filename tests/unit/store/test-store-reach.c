/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-store.h"

/* How far back a full store reaches, session by session: the forecast against what retention does.
 */

#define SECOND 1000000000ULL
#define DAY    (86400 * SECOND)

/* Segments are known to the lists alone, there are no files. */
static Folder *add_session(Place *place, const char *name, bool runtime) {
    Folder *folder = NULL;

    if (store_folder_new(place->store, name, &folder) < 0)
        return NULL;
    folder->claimed = true;
    folder->runtime = runtime;
    return folder;
}

static int add_segment(Folder *folder, uint64_t bytes, uint64_t duration_ns) {
    Entry entry = {.name = segment_name_at(folder->next_number++, DAY),
                   .is_known = true,
                   .this_boot = true,
                   .bytes = bytes,
                   .duration_ns = duration_ns};

    return folder_insert(folder, &entry) ? 0 : -ENOMEM;
}

#define STORE(place)                                                                               \
    _cleanup_(place_done) Place place;                                                             \
    CHECK_OK(place_init(&place));                                                                  \
    place.config->max_use_bytes = 1024 * MIB;                                                      \
    place.config->min_use_bytes = 0;                                                               \
    place.config->keep_free_bytes = 0;                                                             \
    place.config->max_retention_ns = 0;                                                            \
    CHECK_OK(place_open(&place));                                                                  \
    place.store->fs_free = 1ULL << 50

static uint64_t held_ns(const Folder *folder) {
    uint64_t ns = 0;

    for (size_t i = 0; i < folder->n_entries; i++)
        ns += folder->entries[i].duration_ns;
    return ns;
}

/* The forecast: the longest span of which the session is not short. */
static uint64_t forecast_ns(Store *store, const char *name) {
    uint64_t low = 0, high = 1000 * DAY;

    while (high - low > SECOND) {
        uint64_t middle = low + (high - low) / 2;

        if (store_session_is_short(store, name, middle))
            high = middle;
        else
            low = middle;
    }
    return low;
}

static bool near(uint64_t a, uint64_t b, uint64_t percent) {
    uint64_t far = a > b ? a - b : b - a;

    printf("# %.1f s forecast, %.1f s held\n", (double)a / 1e9, (double)b / 1e9);
    return far <= MAX(a, b) * percent / 100;
}

TEST(a_busy_session_started_by_hand_does_not_shorten_the_reach_of_others) {
    Folder *usual, *busy;

    STORE(place);
    usual = add_session(&place, "default", false);
    busy = add_session(&place, "trace", true);
    CHECK(usual && busy);
    /* 480 MiB a day, and the same within five minutes. */
    CHECK_OK(add_segment(usual, 20 * MIB, DAY / 24));
    CHECK_OK(add_segment(busy, 96 * MIB, 60 * SECOND));
    CHECK(!store_session_is_short(place.store, "default", DAY));
    CHECK(store_session_is_short(place.store, "trace", DAY));
    /* A quarter of the store holds the two minutes and a half that it takes. */
    CHECK(!store_session_is_short(place.store, "trace", 150 * SECOND));
    CHECK(store_use(place.store).reach_ns >= DAY);
    CHECK(store_session_reach_ns(place.store, "default") >= DAY);
    CHECK(store_session_reach_ns(place.store, "trace") >= 150 * SECOND);
    CHECK(store_session_reach_ns(place.store, "trace") < DAY);
    CHECK_EQ(store_session_reach_ns(place.store, "nobody"), 0);
}

TEST(a_session_is_short_when_its_own_history_is_cut) {
    Folder *usual, *other;

    STORE(place);
    usual = add_session(&place, "default", false);
    other = add_session(&place, "other", false);
    CHECK(usual && other);
    /* Half of the store is less than a day of the one, and enough for the other. */
    CHECK_OK(add_segment(usual, 4 * MIB, DAY / 24));
    CHECK_OK(add_segment(other, 40 * MIB, DAY / 24));
    CHECK(!store_session_is_short(place.store, "default", DAY));
    CHECK(store_session_is_short(place.store, "other", DAY));
    /* One that has ended keeps what it has, and is short of nothing. */
    other->claimed = false;
    CHECK(!store_session_is_short(place.store, "other", DAY));
    CHECK(!store_session_is_short(place.store, "nobody", DAY));
}

TEST(limits_of_age_and_count_do_not_make_a_session_short) {
    Folder *folder;

    STORE(place);
    folder = add_session(&place, "default", false);
    CHECK(folder);
    CHECK_OK(add_segment(folder, MIB, DAY / 24));
    folder->max_segments = 3;
    CHECK(!store_session_is_short(place.store, "default", DAY));
    folder->max_segments = 0;
    folder->max_retention_ns = DAY / 4;
    CHECK(!store_session_is_short(place.store, "default", DAY));
    CHECK_EQ(store_use(place.store).reach_ns, DAY / 4);
    CHECK_EQ(store_session_reach_ns(place.store, "default"), DAY / 4);
    folder->max_use_bytes = 4 * MIB;
    CHECK(store_session_is_short(place.store, "default", DAY));
}

TEST(the_forecast_matches_what_retention_keeps) {
    static const struct {
        const char *name;
        bool runtime;
        uint64_t bytes, max_use_bytes;
    } sessions[] = {
        {"quiet", false, 64 << 10, 0},
        {"default", false, 1 << 20, 0},
        {"limited", false, 2 << 20, 100 * MIB},
        {"busy", false, 8 << 20, 0},
        {"trace", true, 6 << 20, 0},
        {"aside", true, 256 << 10, 0},
    };
    Folder *folders[ARRAY_SIZE(sessions)];

    STORE(place);
    /* Snapshots take from all. */
    place.store->snapshot_bytes = 128 * MIB;
    for (size_t i = 0; i < ARRAY_SIZE(sessions); i++) {
        folders[i] = add_session(&place, sessions[i].name, sessions[i].runtime);
        CHECK(folders[i]);
        folders[i]->max_use_bytes = sessions[i].max_use_bytes;
    }
    folders[0]->max_retention_ns = 200 * SECOND;
    for (unsigned round = 0; round < 2000; round++) {
        for (size_t i = 0; i < ARRAY_SIZE(sessions); i++)
            CHECK_OK(add_segment(folders[i], sessions[i].bytes, SECOND));
        while (folders[0]->n_entries > 200)
            folder_remove(folders[0], &folders[0]->entries[0]);
        CHECK_OK(store_vacuum(place.store));
    }
    for (size_t i = 1; i < ARRAY_SIZE(sessions); i++)
        CHECK(near(forecast_ns(place.store, sessions[i].name), held_ns(folders[i]), 8));
    CHECK(!store_session_is_short(place.store, "quiet", DAY));
}

TEST_MAIN()
