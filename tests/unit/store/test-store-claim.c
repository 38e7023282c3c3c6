/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-killed.h"
#include "store/window/listing.h"

/* A session in the folder of an earlier one: it finds the segments there, and waits for a writer
 * that recovers them. */

TEST(a_first_session_has_no_previous_segment) {
    SessionConfig config = store_session("default", LAYOUT_FILE, 3);
    StoreSession *session = NULL;

    PLACE(place);
    CHECK_OK(place_open(&place));
    CHECK_OK(store_session_new(place.store, &config, false, &session));
    CHECK(!store_session_previous(session, 0));
    CHECK(!store_session_previous(session, 1));
    CHECK(!store_session_previous(session, 2));
    store_session_close(session);
}

TEST(a_recorder_that_takes_over_finds_the_written_samples) {
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        SessionConfig config = store_session("default", ways[i].layout, ways[i].level);
        StoreSession *session = NULL;
        Shared *shared = share();
        const char *newest, *before;

        PLACE(place);
        CHECK(shared);
        shared->stop_after = 5;
        CHECK_OK(kill_one(&place, &config, shared, 5, 0, 3));
        CHECK_OK(place_open(&place));
        CHECK_OK(store_session_new(place.store, &config, false, &session));
        newest = store_session_previous(session, 0);
        before = store_session_previous(session, 1);
        CHECK(newest && before);
        CHECK(strstr(newest, "~.perf.data"));
        CHECK(strcmp(strrchr(newest, '/'), strrchr(before, '/')) > 0);
        CHECK(count_read(newest) > 0);
        CHECK(count_read(before) > 0);
        store_session_close(session);
        munmap(shared, sizeof(*shared));
    }
}

/* As a recorder that has the rings of the previous one; *ret_ns: where it begins without them. */
static int begin_continued(Place *place, StoreSession *session, uint64_t *ret_ns) {
    const PdCoverage coverage = {.from_ns = clock_anchor_now().monotonic_ns, .cpus = {3}};
    SegmentHead head = {.events = place->events,
                        .clock = clock_anchor_now(),
                        .coverage = &coverage,
                        .continues = true};
    int r;

    put_process(&head.preamble, coverage.from_ns);
    r = store_session_begin(session, &head);
    buffer_done(&head.preamble);
    *ret_ns = coverage.from_ns;
    return r;
}

static bool has_damaged_gap(Store *store) {
    StoreCoverage coverage = store_coverage(store, "default");

    for (size_t i = 0; i < coverage.n_gaps; i++)
        if (coverage.gaps[i].reason == PD_GAP_DAMAGED)
            return true;
    return false;
}

TEST(a_segment_continues_the_previous_one_only_if_that_is_recovered) {
    for (unsigned spoilt = 0; spoilt < 2; spoilt++) {
        SessionConfig config = store_session("default", LAYOUT_FILE, 3);
        _cleanup_(manifest_freep) Manifest *newest = NULL;
        StoreSession *session = NULL;
        Shared *shared = share();
        SegmentName name;
        uint64_t from_ns;

        PLACE(place);
        CHECK(shared);
        shared->stop_after = 5;
        CHECK_OK(kill_one(&place, &config, shared, 5, 0, 3));
        if (spoilt)
            CHECK_EQ(shell("cd %s/sessions/default && echo junk > $(ls *.open)", place.path), 0);
        CHECK_OK(place_open(&place));
        CHECK_OK(store_session_new(place.store, &config, false, &session));
        CHECK(store_session_previous(session, 0));
        CHECK_OK(begin_continued(&place, session, &from_ns));
        CHECK_OK(end_sweep(session, 1));
        CHECK(wait_written(session, 1));
        CHECK_EQ(has_damaged_gap(place.store), spoilt);
        store_session_close(session);
        CHECK_EQ(count_names(&place, "default", ".damaged", NULL), spoilt);
        CHECK_OK(last_manifest(&place, ".perf.data", &name, &newest));
        CHECK_EQ(newest->sequence, 3);
        if (spoilt)
            CHECK_EQ(newest->coverage.from_ns, from_ns);
        else
            CHECK(newest->coverage.from_ns < from_ns);
        munmap(shared, sizeof(*shared));
    }
}

TEST(an_open_segment_of_a_removed_session_is_recovered) {
    SessionConfig gone = store_session("gone", LAYOUT_FILE, 3),
                  other = store_session("other", LAYOUT_FILE, 3);
    StoreSession *session = NULL;
    Shared *shared = share();

    PLACE(place);
    CHECK(shared);
    CHECK_OK(kill_one(&place, &gone, shared, 2, 0, 1000));
    CHECK_OK(place_open(&place));
    CHECK_OK(store_session_new(place.store, &other, false, &session));
    for (unsigned i = 0; i < 5000 && count_names(&place, "gone", "~.perf.data", NULL) == 0; i++)
        usleep(1000);
    CHECK_EQ(count_names(&place, "gone", "~.perf.data", NULL), 1);
    store_session_close(session);
    munmap(shared, sizeof(*shared));
}

TEST(a_session_whose_folder_another_recovers_waits_for_it) {
    SessionConfig gone = store_session("gone", LAYOUT_FILE, 3),
                  other = store_session("other", LAYOUT_FILE, 3);
    Shared *shared = share();

    CHECK(shared);
    for (unsigned i = 0; i < 20; i++) {
        StoreSession *session = NULL, *second = NULL;
        int r;

        PLACE(place);
        CHECK_OK(kill_one(&place, &gone, shared, 1, 0, 1000));
        CHECK_OK(place_open(&place));
        CHECK_OK(store_session_new(place.store, &other, false, &session));
        usleep(i * 50);
        r = store_session_new(place.store, &gone, false, &second);
        store_session_close(second);
        store_session_close(session);
        CHECK_OK(r);
        CHECK_EQ(count_names(&place, "gone", "~.perf.data", NULL), 1);
    }
    munmap(shared, sizeof(*shared));
}

TEST(only_empty_folders_of_started_sessions_go_at_the_next_start) {
    SessionConfig configured = store_session("configured", LAYOUT_FILE, 3),
                  empty = store_session("empty", LAYOUT_FILE, 3),
                  full = store_session("full", LAYOUT_FILE, 3);
    StoreSession *session = NULL;

    PLACE(place);
    empty.runtime = full.runtime = true;
    CHECK_OK(place_open(&place));
    CHECK_OK(store_session_new(place.store, &configured, false, &session));
    store_session_close(session);
    CHECK_OK(store_session_new(place.store, &full, false, &session));
    CHECK_OK(begin_segment(&place, session));
    CHECK_OK(write_samples(session, 0, clock_anchor_now().monotonic_ns, 1000));
    CHECK_OK(end_sweep(session, 1));
    store_session_close(session);
    CHECK_OK(store_session_new(place.store, &empty, false, &session));
    store_session_close(session);
    CHECK_EQ(shell("test -d %s/sessions/empty", place.path), 0);
    CHECK_OK(place_again(&place));
    CHECK(shell("test -e %s/sessions/empty", place.path) != 0);
    CHECK_EQ(shell("test -d %s/sessions/configured", place.path), 0);
    CHECK_EQ(count_names(&place, "full", ".perf.data", NULL), 1);
}

TEST_MAIN()
