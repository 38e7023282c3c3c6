/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/file.h>

#include "make-store.h"

/* A session from its beginning to its end, as the recorder uses it. */

enum { READERS = 64992, ADMINS = 64993 };

#define OPEN_PLACE(place)                                                                          \
    PLACE(place);                                                                                  \
    CHECK_OK(place_open(&place))

/* `segments` of two sweeps each, on two CPUs. */
static int record(Place *place, StoreSession *session, unsigned segments, unsigned samples) {
    static uint64_t sweep;
    int r = 0;

    for (unsigned i = 0; r == 0 && i < segments; i++) {
        r = begin_segment(place, session);
        for (unsigned k = 0; r == 0 && k < 2; k++) {
            uint64_t now = clock_anchor_now().monotonic_ns;

            r = write_side_band(session, now);
            if (r == 0)
                r = write_samples(session, 0, now, samples);
            if (r == 0)
                r = write_samples(session, 1, now, samples);
            if (r == 0)
                r = end_sweep(session, ++sweep);
        }
    }
    return r == 0 && !wait_written(session, sweep) ? -ETIMEDOUT : r;
}

TEST(segments_of_every_layout_contain_what_was_written) {
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        OPEN_PLACE(place);
        SessionConfig config = store_session("default", ways[i].layout, ways[i].level);
        _cleanup_(store_session_closep) StoreSession *session = NULL;
        StoreSessionCounts counts;
        char last[256], path[400];
        CHECK_OK(store_session_new(place.store, &config, false, &session));
        CHECK_OK(record(&place, session, 3, 1000));
        counts = store_session_counts(session);
        CHECK_EQ(counts.segments, 2);
        CHECK_EQ(counts.total_samples, 12000);
        CHECK_EQ(counts.error, 0);
        snprintf(path, sizeof(path), "%s", store_session_path(session));
        session = store_session_close(session);
        CHECK_EQ(count_names(&place, "default", ".perf.data", last), 3);
        CHECK_EQ(count_names(&place, "default", ".open", NULL), 0);
        CHECK_EQ(count_read(path), 4000);
        CHECK(strstr(path, last));
    }
}

static void count_word(void *userdata) {
    ++*(_Atomic int *)userdata;
}

/* The end of the sweep after it: the writer has told of the first one by then, or never will. */
static int sweep_and_count(StoreSession *session, uint64_t sweep, _Atomic int *words) {
    int before = *words;

    if (end_sweep(session, sweep) < 0 || !wait_written(session, sweep) ||
        end_sweep(session, sweep + 1) < 0 || !wait_written(session, sweep + 1))
        return -ETIMEDOUT;
    return *words - before;
}

TEST(the_owner_is_told_of_the_sweeps_that_it_listens_for) {
    OPEN_PLACE(place);
    SessionConfig config = store_session("default", LAYOUT_FILE, 3);
    _cleanup_(store_session_closep) StoreSession *session = NULL;
    _Atomic int words = 0;

    place.store->on_written = count_word;
    place.store->userdata = (void *)&words;
    CHECK_OK(store_session_new(place.store, &config, false, &session));
    CHECK_OK(begin_segment(&place, session));
    CHECK_OK(end_sweep(session, 1));
    CHECK(wait_written(session, 1));
    CHECK_EQ(sweep_and_count(session, 2, &words), 0);
    store_session_listen(session, 4);
    CHECK_EQ(sweep_and_count(session, 4, &words), 1);
    session = store_session_close(session);
}

TEST(a_segment_does_not_contain_the_clock_after_the_step_that_ends_it) {
    OPEN_PLACE(place);
    SessionConfig config = store_session("default", LAYOUT_FILE, 3);
    _cleanup_(store_session_closep) StoreSession *session = NULL;
    ClockAnchor clock;
    CHECK_OK(store_session_new(place.store, &config, false, &session));
    CHECK_OK(begin_segment(&place, session));
    clock = clock_anchor_now();
    CHECK_OK(write_samples(session, 0, clock.monotonic_ns, 10));
    clock.real_ns = 77;
    CHECK_OK(store_session_end_sweep(session, 1, true, &clock));
    session = store_session_close(session);
    CHECK_EQ(shell("grep -q '\"anchors\":\\[\\[' %s/sessions/default/*.json", place.path), 0);
    CHECK(shell("grep -q ',77,' %s/sessions/default/*.json", place.path) != 0);
}

TEST(a_session_cannot_be_opened_twice) {
    OPEN_PLACE(place);
    SessionConfig config = store_session("default", LAYOUT_FILE, 3);
    _cleanup_(store_session_closep) StoreSession *session = NULL, *second = NULL;
    CHECK_OK(store_session_new(place.store, &config, false, &session));
    CHECK_EQ(store_session_new(place.store, &config, false, &second), -EEXIST);
    session = store_session_close(session);
    CHECK_OK(store_session_new(place.store, &config, false, &second));
}

TEST(segment_numbers_continue_in_an_emptied_folder) {
    OPEN_PLACE(place);
    SessionConfig config = store_session("default", LAYOUT_FILE, 3);
    _cleanup_(store_session_closep) StoreSession *session = NULL;
    char command[200], last[256];
    CHECK_OK(store_session_new(place.store, &config, false, &session));
    CHECK_OK(record(&place, session, 3, 10));
    session = store_session_close(session);
    snprintf(command, sizeof(command), "rm %s/sessions/default/0*", place.path);
    CHECK_EQ(system(command), 0);
    CHECK_OK(place_again(&place));
    CHECK_OK(store_session_new(place.store, &config, false, &session));
    CHECK_OK(record(&place, session, 1, 10));
    session = store_session_close(session);
    CHECK_EQ(count_names(&place, "default", ".perf.data", last), 1);
    CHECK(strncmp(last, "00000004-", 9) == 0);
}

TEST(a_full_queue_refuses_and_counts) {
    OPEN_PLACE(place);
    SessionConfig config = store_session("default", LAYOUT_FILE, 3);
    _cleanup_(store_session_closep) StoreSession *session = NULL;
    StoreBatch batch = {.kind = STORE_SAMPLES, .samples = 5};
    CHECK_OK(store_session_new(place.store, &config, false, &session));
    CHECK_OK(begin_segment(&place, session));
    buffer_zero(&batch.records, 40 << 20);
    CHECK_EQ(store_session_write(session, &batch), -ENOBUFS);
    CHECK_EQ(batch.records.size, 40 << 20);
    CHECK_EQ(store_session_counts(session).dropped_samples, 5);
    buffer_done(&batch.records);
}

TEST(sessions_share_the_memory_of_their_queues_and_give_it_back) {
    OPEN_PLACE(place);
    SessionConfig config = store_session("default", LAYOUT_FILE, 3);
    _cleanup_(store_session_closep) StoreSession *session = NULL;
    const uint64_t others = 3 << 20;
    ClockAnchor clock = clock_anchor_now();
    place.store->memory.queue_bytes = 4 << 20;
    CHECK_OK(store_session_new(place.store, &config, false, &session));
    place.store->queued_bytes = others;
    CHECK_OK(begin_segment(&place, session));
    CHECK_OK(write_samples(session, 0, clock_anchor_now().monotonic_ns, 10));
    CHECK(!store_session_counts(session).is_full);
    CHECK_EQ(write_samples(session, 0, clock_anchor_now().monotonic_ns, 40000), -ENOBUFS);
    CHECK(store_session_counts(session).is_full);
    CHECK_OK(write_samples(session, 0, clock_anchor_now().monotonic_ns, 10));
    /* Until half of it is free again. */
    atomic_fetch_sub(&place.store->queued_bytes, others / 2);
    CHECK_OK(store_session_end_sweep(session, 1, true, &clock));
    while (store_session_counts(session).queue_bytes > 0)
        usleep(1000);
    CHECK(!store_session_counts(session).is_full);
    session = store_session_close(session);
    CHECK_EQ(atomic_load(&place.store->queued_bytes), others - others / 2);
}

TEST(a_second_daemon_logs_the_owner_of_the_store) {
    Store *second = NULL;
    char words[400] = "", me[32];
    int saved = dup(2), fds[2];

    OPEN_PLACE(place);
    CHECK_OK(pipe(fds));
    dup2(fds[1], 2);
    CHECK_EQ(store_open(&(StoreOptions){.path = place.path,
                                        .environment = place.environment,
                                        .config = place.config},
                        &second),
             -EBUSY);
    dup2(saved, 2);
    CHECK(read(fds[0], words, sizeof(words) - 1) > 0);
    close(fds[0]);
    close(fds[1]);
    close(saved);
    snprintf(me, sizeof(me), "process %d on ", (int)getpid());
    CHECK(strstr(words, me));
}

/* Gives the lock back after a while, as a process does that takes time to die. */
static void *release_later(void *lock) {
    usleep(300000);
    close(*(int *)lock);
    return NULL;
}

TEST(a_store_whose_owner_is_still_dying_is_waited_for) {
    OPEN_PLACE(place);
    char path[600];
    int lock;
    pthread_t thread;

    place.store = store_free(place.store);
    snprintf(path, sizeof(path), "%s/.lock", place.path);
    lock = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(lock >= 0);
    CHECK_OK(flock(lock, LOCK_EX | LOCK_NB));
    CHECK_EQ(pthread_create(&thread, NULL, release_later, &lock), 0);
    CHECK_OK(place_open(&place));
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(unknown_files_in_a_store_are_not_touched) {
    OPEN_PLACE(place);
    SessionConfig config = store_session("default", LAYOUT_FILE, 3);
    _cleanup_(store_session_closep) StoreSession *session = NULL;
    char command[600];
    place.store = store_free(place.store);
    snprintf(
        command, sizeof(command),
        "cd %s/sessions && mkdir default .hidden 'bad name' && touch file && "
        "ln -s / link && cd default && ln -s /etc/passwd 00000007-20260101T000000Z.perf.data && "
        "mkfifo 00000008-20260101T000000Z.perf.data.open && touch strange && "
        "touch 999999999999999999-20260101T000000Z.perf.data && ln -s /etc .sequence",
        place.path);
    CHECK_EQ(system(command), 0);
    CHECK_OK(place_open(&place));
    CHECK_OK(store_session_new(place.store, &config, false, &session));
    CHECK_OK(record(&place, session, 1, 10));
    CHECK(strstr(store_session_path(session), "/00000001-"));
    session = store_session_close(session);
    CHECK_EQ(count_names(&place, "default", "", NULL), 6);
}

static int note_seal(void *userdata, int fd, bool sensitive) {
    struct stat st;
    unsigned *n = userdata;

    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && sensitive)
        ++*n;
    return 0;
}

TEST(finished_files_are_sealed) {
    SessionConfig config = store_session("default", LAYOUT_FILE, 3);
    StoreSession *session = NULL;
    unsigned n = 0;

    OPEN_PLACE(place);
    place.store = store_free(place.store);
    CHECK_OK(store_open(&(StoreOptions){.path = place.path,
                                        .environment = place.environment,
                                        .config = place.config,
                                        .seal = note_seal,
                                        .userdata = &n},
                        &place.store));
    CHECK_OK(store_session_new(place.store, &config, true, &session));
    CHECK_OK(record(&place, session, 2, 10));
    session = store_session_close(session);
    /* Segments and manifests. */
    CHECK_EQ(n, 4);
}

/* One that changes the group, as the keeper does, unless it is gone. */
static int change_group(void *userdata, int fd, bool sensitive) {
    const bool *gone = userdata;

    if (*gone)
        return -EPIPE;
    return fchown(fd, (uid_t)-1, sensitive ? ADMINS : READERS) < 0 ? -errno : 0;
}

static int open_with(Place *place, bool *gone) {
    place->store = store_free(place->store);
    return store_open(&(StoreOptions){.path = place->path,
                                      .environment = place->environment,
                                      .config = place->config,
                                      .seal = change_group,
                                      .userdata = gone},
                      &place->store);
}

/* Files of the session's finished segments, manifests too, that do not have a group. */
static unsigned count_without(const Place *place, unsigned group) {
    char command[400];
    unsigned n = 0;
    FILE *found;

    snprintf(command, sizeof(command),
             "find %s/sessions/gone -type f ! -gid %u \\( -name '*.json' -o -path '*.perf.data*' "
             "\\) | wc -l",
             place->path, group);
    found = popen(command, "re");
    if (!found || fscanf(found, "%u", &n) != 1)
        n = 9999;
    if (found)
        (void)pclose(found);
    return n;
}

/* Another session's writer seals while it has nothing to write: how many files of the other one are
 * left that do not have a group. */
static unsigned wait_sealed(Place *place, StoreSession **session, unsigned group) {
    SessionConfig config = store_session("default", LAYOUT_FILE, 3);
    bool gone = false;
    unsigned n = 9999;

    if (open_with(place, &gone) < 0 || store_session_new(place->store, &config, false, session) < 0)
        return n;
    for (unsigned k = 0; k < 5000 && (n = count_without(place, group)) > 0; k++)
        (void)usleep(1000);
    return n;
}

/* Each seal has a limit of time of its own, so that any one of the files can be left over. */
TEST(one_unsealed_file_of_a_recording_is_sealed_later) {
    static const struct {
        Layout layout;
        const char *left;
    } rows[] = {{LAYOUT_FILE, "*.json"},
                {LAYOUT_FILE, "*.perf.data"},
                {LAYOUT_DIRECTORY, "manifest.json"},
                {LAYOUT_DIRECTORY, "data"},
                {LAYOUT_DIRECTORY, "data.0"}};

    if (geteuid() != 0)
        TEST_SKIP("needs root to give files to a group");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        SessionConfig gone_session = store_session("gone", rows[i].layout, 3);
        StoreSession *session = NULL;
        char command[300];
        bool gone = false;

        OPEN_PLACE(place);
        CHECK_OK(open_with(&place, &gone));
        CHECK_OK(store_session_new(place.store, &gone_session, false, &session));
        CHECK_OK(record(&place, session, 1, 10));
        session = store_session_close(session);
        CHECK_EQ(count_without(&place, READERS), 0);
        snprintf(command, sizeof(command),
                 "find %s/sessions/gone -type f -name '%s' -exec chgrp 0 {} +", place.path,
                 rows[i].left);
        CHECK_EQ(system(command), 0);
        CHECK_EQ(count_without(&place, READERS), 1);
        CHECK_EQ(wait_sealed(&place, &session, READERS), 0);
        session = store_session_close(session);
    }
}

TEST(segments_finished_without_a_keeper_are_sealed_later) {
    static const Layout layouts[] = {LAYOUT_FILE, LAYOUT_DIRECTORY};

    if (geteuid() != 0)
        TEST_SKIP("needs root to give files to a group");
    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        for (unsigned sensitive = 0; sensitive < 2; sensitive++) {
            SessionConfig gone_session = store_session("gone", layouts[i], 3);
            unsigned readers = sensitive ? ADMINS : READERS;
            StoreSession *session = NULL;
            bool gone = true;

            OPEN_PLACE(place);
            CHECK_OK(open_with(&place, &gone));
            CHECK_OK(store_session_new(place.store, &gone_session, sensitive, &session));
            CHECK_OK(record(&place, session, 2, 10));
            session = store_session_close(session);
            CHECK(count_without(&place, readers) >= 4);
            CHECK_EQ(wait_sealed(&place, &session, readers), 0);
            session = store_session_close(session);
        }
    }
}

TEST_MAIN()
