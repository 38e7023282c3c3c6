/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-store.h"

/* The segments that retention deletes and keeps: by bytes, count and age, with clocks that can be
 * set. */

enum { ROTATIONS = 250, SESSIONS = 4 };

#define NS   1000000000ULL
#define DAY  (86400 * NS)
#define YEAR (365 * DAY)

static ClockAnchor fake_clock;
static bool fake_synchronised;

static ClockAnchor fake_now(void) {
    return fake_clock;
}

static bool fake_is_synchronised(void) {
    return fake_synchronised;
}

static int add_size(const char *path, const struct stat *st, int type, struct FTW *ftw);
static uint64_t total;

static int add_size(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    if (type == FTW_F)
        total += MAX((uint64_t)st->st_size, (uint64_t)st->st_blocks * 512);
    return 0;
}

/* Of all sessions, as a stranger would count it. */
static uint64_t measure(const Place *place) {
    char path[160];

    snprintf(path, sizeof(path), "%s/sessions", place->path);
    total = 0;
    (void)nftw(path, add_size, 16, FTW_PHYS);
    return total;
}

static unsigned count_descriptors(void) {
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

TEST(a_budget_holds_over_a_thousand_rotations_of_several_sessions) {
    static const char *const names[SESSIONS] = {"a", "b", "c", "d"};
    const uint64_t limit = 2 * MIB, segment = 96 * 1024;
    StoreSession *sessions[SESSIONS];
    uint64_t sweep = 0, most = 0;
    unsigned descriptors = 0;
    _cleanup_(place_done) Place place;

    CHECK_OK(place_init(&place));
    place.config->max_use_bytes = limit;
    place.config->min_use_bytes = 0;
    place.config->keep_free_bytes = 0;
    CHECK_OK(place_open(&place));
    for (unsigned i = 0; i < SESSIONS; i++) {
        SessionConfig config =
            store_session(names[i], i % 2 ? LAYOUT_DIRECTORY : LAYOUT_FILE, i < 2 ? 3 : 0);

        CHECK_OK(store_session_new(place.store, &config, false, &sessions[i]));
    }
    for (unsigned k = 0; k < ROTATIONS; k++) {
        sweep++;
        for (unsigned i = 0; i < SESSIONS; i++) {
            CHECK_OK(begin_segment(&place, sessions[i]));
            CHECK_OK(write_samples(sessions[i], 0, clock_anchor_now().monotonic_ns, 500));
            CHECK_OK(end_sweep(sessions[i], sweep));
        }
        for (unsigned i = 0; i < SESSIONS; i++)
            CHECK(wait_written(sessions[i], sweep));
        most = MAX(most, measure(&place));
        if (k == 10)
            descriptors = count_descriptors();
        CHECK(most <= limit + SESSIONS * segment);
    }
    /* Writers may just be deleting something. */
    CHECK(count_descriptors() <= descriptors + 8 * SESSIONS);
    /* And it is used: what could stay was not thrown away. */
    CHECK(most >= limit / 2);
    CHECK(measure(&place) >= limit / 2);
    CHECK(store_use(place.store).used_bytes <= limit + SESSIONS * segment);
    CHECK(store_use(place.store).reach_ns > 0);
    for (unsigned i = 0; i < SESSIONS; i++) {
        CHECK_EQ(store_session_counts(sessions[i]).segments, ROTATIONS - 1);
        CHECK(count_names(&place, names[i], ".perf.data", NULL) >= 2);
        store_session_close(sessions[i]);
        CHECK_OK(count_all(&place, names[i]));
    }
}

/* A segment as a past daemon may have left it: `bytes` of nothing, and a manifest. */
static int fake_segment(const Place *place, const char *session, uint64_t number, uint64_t bytes,
                        const char *boot, ClockAnchor end, bool synchronised) {
    _cleanup_(manifest_freep) Manifest *manifest = NULL;
    SegmentName name = segment_name_at(number, end.real_ns);
    char path[400], text[SEGMENT_NAME_MAX];
    _cleanup_close_ int folder = -1, fd = -1;
    int r = manifest_new(&manifest);

    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "%s/sessions/%s", place->path, session);
    if (shell("mkdir -p %s", path) != 0)
        return -EIO;
    folder = open(path, O_RDONLY | O_DIRECTORY);
    segment_name_print(&name, text);
    fd = openat(folder, text, O_WRONLY | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
        return -errno;
    snprintf(manifest->session, sizeof(manifest->session), "%s", session);
    snprintf(manifest->boot, sizeof(manifest->boot), "%s", boot);
    manifest->sequence = number;
    manifest->synchronised = synchronised;
    manifest->completeness = COMPLETE;
    r = manifest_add_anchor(manifest, &end);
    return r < 0 ? r : manifest_write(folder, &name, manifest);
}

/* Opens a store on what fakes are there, by the clock of the test. */
static int open_faked(Place *place) {
    int r = place_again(place);

    if (r < 0)
        return r;
    place->store->now = fake_now;
    place->store->synchronised = fake_is_synchronised;
    place->store->believed = (BelievedClock){.base = fake_clock};
    return 0;
}

static ClockAnchor at(uint64_t real_ns, uint64_t boot_ns) {
    return (ClockAnchor){.real_ns = real_ns, .monotonic_ns = boot_ns, .boot_ns = boot_ns};
}

static void pass(uint64_t ns) {
    fake_clock.real_ns += ns;
    fake_clock.monotonic_ns += ns;
    fake_clock.boot_ns += ns;
}

#define FAKED(place)                                                                               \
    _cleanup_(place_done) Place place;                                                             \
    CHECK_OK(place_init(&place));                                                                  \
    place.config->max_use_bytes = 1024 * MIB;                                                      \
    place.config->keep_free_bytes = 0;                                                             \
    place.config->max_retention_ns = 7 * DAY;                                                      \
    fake_clock = at(50 * YEAR, 10 * DAY);                                                          \
    fake_synchronised = true;                                                                      \
    CHECK_OK(place_open(&place))

TEST(expired_segments_are_deleted_and_others_kept) {
    FAKED(place);
    for (unsigned i = 0; i < 10; i++)
        CHECK_OK(fake_segment(&place, "default", i + 1, 4096, "another",
                              at(fake_clock.real_ns - (10 - i) * DAY - NS, 1), true));
    CHECK_OK(open_faked(&place));
    CHECK_OK(store_vacuum(place.store));
    CHECK_EQ(count_names(&place, "default", ".perf.data", NULL), 6);
    CHECK_EQ(count_names(&place, "default", ".json", NULL), 6);
    pass(DAY);
    CHECK_OK(store_vacuum(place.store));
    CHECK_EQ(count_names(&place, "default", ".perf.data", NULL), 5);
}

TEST(sessions_started_at_runtime_share_a_quarter_of_the_budget) {
    static const char *const names[] = {"default", "one", "two"};

    FAKED(place);
    place.config->max_use_bytes = 64 * MIB;
    place.config->min_use_bytes = 0;
    for (size_t n = 0; n < ARRAY_SIZE(names); n++)
        for (unsigned i = 0; i < 4; i++)
            CHECK_OK(fake_segment(&place, names[n], i + 1, 4 * MIB, "another",
                                  at(fake_clock.real_ns - DAY, 1), true));
    CHECK_OK(open_faked(&place));
    CHECK_OK(store_vacuum(place.store));
    CHECK_EQ(count_names(&place, "one", ".perf.data", NULL), 4);
    /* The folder of a session says what the session was, whichever profd wrote it. */
    CHECK(shell("touch %s/sessions/one/.runtime %s/sessions/two/.runtime", place.path,
                place.path) == 0);
    CHECK_OK(open_faked(&place));
    CHECK_OK(store_vacuum(place.store));
    CHECK_EQ(count_names(&place, "default", ".perf.data", NULL), 4);
    CHECK_EQ(count_names(&place, "one", ".perf.data", NULL) +
                 count_names(&place, "two", ".perf.data", NULL),
             3);
    CHECK(count_names(&place, "one", ".perf.data", NULL) > 0);
    CHECK(count_names(&place, "two", ".perf.data", NULL) > 0);
}

TEST(the_folder_of_a_session_marks_it_as_started_at_runtime) {
    SessionConfig config = store_session("web", LAYOUT_FILE, 0);
    StoreSession *session;

    FAKED(place);
    config.runtime = true;
    CHECK_OK(store_session_new(place.store, &config, false, &session));
    store_session_close(session);
    CHECK(shell("test -f %s/sessions/web/.runtime", place.path) == 0);
    config.runtime = false;
    CHECK_OK(store_session_new(place.store, &config, false, &session));
    store_session_close(session);
    CHECK(shell("test -f %s/sessions/web/.runtime", place.path) != 0);
}

TEST(nothing_expires_while_the_clock_is_not_synchronised) {
    FAKED(place);
    CHECK_OK(fake_segment(&place, "default", 1, 4096, "another", at(YEAR, 1), true));
    CHECK_OK(open_faked(&place));
    fake_synchronised = false;
    CHECK_OK(store_vacuum(place.store));
    CHECK_EQ(count_names(&place, "default", ".perf.data", NULL), 1);
    fake_synchronised = true;
    CHECK_OK(store_vacuum(place.store));
    CHECK_EQ(count_names(&place, "default", ".perf.data", NULL), 0);
}

TEST(a_clock_that_jumps_ahead_deletes_no_young_segment) {
    char boot[STORE_BOOT_SIZE];

    FAKED(place);
    snprintf(boot, sizeof(boot), "%s", place.store->boot);
    CHECK_OK(fake_segment(&place, "default", 1, 4096, "another",
                          at(fake_clock.real_ns - 6 * DAY, 1), true));
    CHECK_OK(fake_segment(&place, "default", 2, 4096, boot,
                          at(fake_clock.real_ns - 2 * DAY, fake_clock.boot_ns - 2 * DAY), true));
    CHECK_OK(open_faked(&place));
    fake_clock.real_ns += YEAR;
    CHECK_OK(store_vacuum(place.store));
    pass(1800 * NS);
    CHECK_OK(store_vacuum(place.store));
    CHECK_EQ(count_names(&place, "default", ".perf.data", NULL), 2);
    /* It stays ahead: then the time of day was wrong before, and only what is of this boot is
     * known to be young. */
    pass(3600 * NS);
    CHECK_OK(store_vacuum(place.store));
    CHECK_EQ(count_names(&place, "default", ".perf.data", NULL), 1);
    CHECK_EQ(count_names(&place, "default", ".json", NULL), 1);
    pass(5 * DAY);
    CHECK_OK(store_vacuum(place.store));
    CHECK_EQ(count_names(&place, "default", ".perf.data", NULL), 0);
}

TEST(a_clock_that_jumps_back_deletes_nothing) {
    FAKED(place);
    for (unsigned i = 0; i < 5; i++)
        CHECK_OK(fake_segment(&place, "default", i + 1, 4096, "another",
                              at(fake_clock.real_ns - (5 - i) * DAY, 1), true));
    CHECK_OK(open_faked(&place));
    fake_clock.real_ns -= 20 * YEAR;
    for (unsigned i = 0; i < 4; i++) {
        CHECK_OK(store_vacuum(place.store));
        pass(3600 * NS);
    }
    CHECK_EQ(count_names(&place, "default", ".perf.data", NULL), 5);
}

TEST(a_segment_without_trusted_time_has_the_age_of_the_next) {
    FAKED(place);
    CHECK_OK(fake_segment(&place, "default", 1, 4096, "another", at(DAY, 1), false));
    CHECK_OK(fake_segment(&place, "default", 2, 4096, "another",
                          at(fake_clock.real_ns - 6 * DAY, 1), true));
    CHECK_OK(open_faked(&place));
    CHECK_OK(store_vacuum(place.store));
    CHECK_EQ(count_names(&place, "default", ".perf.data", NULL), 2);
    pass(2 * DAY);
    CHECK_OK(store_vacuum(place.store));
    CHECK_EQ(count_names(&place, "default", ".perf.data", NULL), 0);
}

TEST(the_oldest_segments_by_number_are_deleted_first) {
    char last[256];

    FAKED(place);
    for (unsigned i = 0; i < 8; i++)
        CHECK_OK(fake_segment(&place, "default", i + 1, MIB, "another",
                              at(fake_clock.real_ns - (i % 2 ? 6 : 1) * DAY, 1), true));
    CHECK_OK(open_faked(&place));
    place.config->max_use_bytes = 3 * MIB + 100 * 1024;
    store_configure(place.store, place.config);
    CHECK_OK(store_vacuum(place.store));
    CHECK_EQ(count_names(&place, "default", ".perf.data", last), 3);
    CHECK(strncmp(last, "00000008", 8) == 0);
    CHECK_EQ(shell("ls %s/sessions/default | grep -q ^00000006", place.path), 0);
    CHECK(store_use(place.store).used_bytes <= 3 * MIB + 100 * 1024);
}

TEST(the_session_furthest_over_its_share_loses_segments) {
    FAKED(place);
    for (unsigned i = 0; i < 10; i++)
        CHECK_OK(fake_segment(&place, "big", i + 1, MIB, "another", fake_clock, true));
    CHECK_OK(
        fake_segment(&place, "small", 1, MIB, "another", at(fake_clock.real_ns - DAY, 1), true));
    CHECK_OK(open_faked(&place));
    place.config->max_use_bytes = 5 * MIB;
    store_configure(place.store, place.config);
    CHECK_OK(store_vacuum(place.store));
    CHECK_EQ(count_names(&place, "small", ".perf.data", NULL), 1);
    CHECK_EQ(count_names(&place, "big", ".perf.data", NULL), 3);
}

TEST(limits_of_a_session_apply_only_to_it) {
    SessionConfig *config;
    const char *expected;

    FAKED(place);
    CHECK_OK(config_set(place.config, "Session few", "MaxSegments", "2", &expected));
    CHECK_OK(config_set(place.config, "Session less", "MaxUse", "3M", &expected));
    for (unsigned i = 0; i < 5; i++) {
        CHECK_OK(fake_segment(&place, "few", i + 1, MIB, "another", fake_clock, true));
        CHECK_OK(fake_segment(&place, "less", i + 1, MIB - 8192, "another", fake_clock, true));
        CHECK_OK(fake_segment(&place, "default", i + 1, MIB, "another", fake_clock, true));
    }
    config = (SessionConfig *)config_session(place.config, "few");
    CHECK_EQ(config->max_segments, 2);
    CHECK_OK(open_faked(&place));
    CHECK_OK(store_vacuum(place.store));
    CHECK_EQ(count_names(&place, "few", ".perf.data", NULL), 2);
    CHECK_EQ(count_names(&place, "less", ".perf.data", NULL), 3);
    CHECK_EQ(count_names(&place, "default", ".perf.data", NULL), 5);
}

TEST(a_session_keeps_its_segments_no_longer_than_the_store) {
    const char *expected;

    FAKED(place);
    CHECK_OK(config_set(place.config, "Session less", "MaxRetentionSec", "3d", &expected));
    CHECK_OK(config_set(place.config, "Session more", "MaxRetentionSec", "30d", &expected));
    for (unsigned i = 0; i < 10; i++) {
        ClockAnchor end = at(fake_clock.real_ns - (10 - i) * DAY - NS, 1);

        CHECK_OK(fake_segment(&place, "less", i + 1, 4096, "another", end, true));
        CHECK_OK(fake_segment(&place, "more", i + 1, 4096, "another", end, true));
    }
    CHECK_OK(open_faked(&place));
    CHECK_OK(store_vacuum(place.store));
    CHECK_EQ(count_names(&place, "less", ".perf.data", NULL), 2);
    CHECK_EQ(count_names(&place, "more", ".perf.data", NULL), 6);
}

TEST(open_segments_and_snapshots_are_never_deleted) {
    FAKED(place);
    CHECK_OK(fake_segment(&place, "default", 1, MIB, "another", at(YEAR, 1), true));
    CHECK_EQ(shell("cd %s && cp sessions/default/*.perf.data "
                   "sessions/default/00000009-20260101T000000Z.perf.data.open && "
                   "cp sessions/default/0*1-*.perf.data snapshots/kept.perf.data",
                   place.path),
             0);
    CHECK_OK(open_faked(&place));
    place.config->max_use_bytes = 1;
    store_configure(place.store, place.config);
    CHECK_OK(store_vacuum(place.store));
    CHECK_EQ(count_names(&place, "default", ".perf.data", NULL), 0);
    CHECK_EQ(count_names(&place, "default", ".open", NULL), 1);
    CHECK_EQ(shell("test -e %s/snapshots/kept.perf.data", place.path), 0);
}

TEST(budgets_follow_the_file_system) {
    FAKED(place);
    place.store->fs_total = 1000 * MIB;
    place.store->fs_free = 500 * MIB;
    place.config->max_use_bytes = CONFIG_BUILT_IN;
    place.config->keep_free_bytes = CONFIG_BUILT_IN;
    place.config->min_use_bytes = 16 * MIB;
    store_configure(place.store, place.config);
    CHECK_EQ(store_limit_bytes(place.store), 100 * MIB);
    /* 15% are to stay free. */
    place.store->fs_free = 200 * MIB;
    CHECK_EQ(store_limit_bytes(place.store), 50 * MIB);
    place.store->fs_free = 100 * MIB;
    CHECK_EQ(store_limit_bytes(place.store), 16 * MIB);
    /* A large disk does not mean a large store. */
    place.store->fs_total = 1024 * 1024 * MIB;
    place.store->fs_free = 1000 * 1024 * MIB;
    place.store->n_cpus = 4;
    CHECK_EQ(store_limit_bytes(place.store), 4096 * MIB);
    place.store->n_cpus = 64;
    CHECK_EQ(store_limit_bytes(place.store), 64 * 256 * MIB);
    place.config->storage = STORAGE_VOLATILE;
    place.config->runtime_max_use_bytes = 64 * MIB;
    store_configure(place.store, place.config);
    CHECK_EQ(store_limit_bytes(place.store), 64 * MIB);
    place.store->memory.store_bytes = 10 * MIB;
    store_configure(place.store, place.config);
    CHECK_EQ(store_limit_bytes(place.store), 10 * MIB);
    place.config->storage = STORAGE_PERSISTENT;
    store_configure(place.store, place.config);
    CHECK(store_limit_bytes(place.store) > 64 * MIB);
}

TEST(a_clock_change_is_measured_against_another_clock) {
    ClockAnchor a = at(1000 * NS, 10 * NS), b = at(1001 * NS, 11 * NS);

    CHECK(!clock_anchor_moved(&a, &b, NS / 100));
    b.real_ns += NS / 50;
    CHECK(clock_anchor_moved(&a, &b, NS / 100));
    b.real_ns -= NS / 25;
    CHECK(clock_anchor_moved(&a, &b, NS / 100));
    b = at(1001 * NS, 11 * NS);
    b.boot_ns += NS;
    CHECK(clock_anchor_moved(&a, &b, NS / 100));
    a = clock_anchor_now();
    b = clock_anchor_now();
    CHECK(b.monotonic_ns >= a.monotonic_ns);
}

TEST_MAIN()
