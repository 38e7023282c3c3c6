/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-killed.h"
#include "perfdata/feature/environment.h"

/* The files that a killed daemon leaves, and their recovery. */

enum { KILLS = 25 };

static void kill_often(Way way) {
    SessionConfig config = store_session("default", way.layout, way.level);
    Shared *shared = share();
    uint64_t least = 0;
    int64_t found;

    PLACE(place);
    CHECK(shared);
    srand(1);
    for (unsigned i = 0; i < KILLS; i++) {
        CHECK_OK(kill_one(&place, &config, shared, 1, (unsigned)(rand() % 20000), 3));
        least += shared->samples;
        CHECK_OK(place_open(&place));
        CHECK_OK(recover_all(&place, "default"));
        place.store = store_free(place.store);
        CHECK_EQ(count_names(&place, "default", ".open", NULL), 0);
        CHECK_EQ(count_names(&place, "default", ".damaged", NULL), 0);
        found = count_all(&place, "default");
        CHECK_OK(found);
        if ((uint64_t)found < least)
            printf("# found %" PRId64 " of %" PRIu64 "\n", found, least);
        CHECK((uint64_t)found >= least);
        /* Records that were handed over and not yet reported as written may be there or not. */
        least = (uint64_t)found;
    }
    CHECK(count_names(&place, "default", "~.perf.data", NULL) >= KILLS);
    munmap(shared, sizeof(*shared));
}

TEST(a_killed_writer_of_compressed_files_loses_nothing_written) {
    kill_often(ways[0]);
}

TEST(a_killed_writer_of_plain_files_loses_nothing_written) {
    kill_often(ways[1]);
}

TEST(a_killed_writer_of_compressed_folders_loses_nothing_written) {
    kill_often(ways[2]);
}

TEST(a_killed_writer_of_plain_folders_loses_nothing_written) {
    kill_often(ways[3]);
}

/* The only recovered segment's own header, and what its manifest says of the same. */
static int compare_coverage(const Place *place, const Manifest *manifest) {
    _cleanup_(pd_environment_freep) PdEnvironment *environment = NULL;
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(pd_coverage_done) PdCoverage known = {};
    char last[256], path[500];
    int r = manifest_real_coverage(manifest, &known);

    (void)count_names(place, "default", "~.perf.data", last);
    snprintf(path, sizeof(path), "%s/sessions/default/%s", place->path, last);
    if (r == 0)
        r = pd_reader_open(path, NULL, &reader, NULL);
    if (r == 0)
        r = pd_environment_new(&environment);
    if (r == 0)
        r = pd_environment_from_reader(environment, reader, &(unsigned){0}, &(PdDamage){});
    if (r < 0)
        return r;
    if (!environment->has[PD_FEATURE_PROFD_COVERAGE])
        return -ENOENT;
    return environment->coverage.from_ns == known.from_ns &&
                   environment->coverage.to_ns == known.to_ns && known.to_ns > known.from_ns &&
                   environment->coverage.n_gaps == known.n_gaps &&
                   memcmp(environment->coverage.cpus, known.cpus, sizeof(known.cpus)) == 0
               ? 0
               : -EBADMSG;
}

TEST(a_recovered_segment_keeps_the_facts_noted_at_its_beginning) {
    static const char asked_for[] = "cpu-clock/freq=1000/";

    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        SessionConfig config = store_session("default", ways[i].layout, ways[i].level);
        _cleanup_(manifest_freep) Manifest *open = NULL, *mended = NULL;
        Shared *shared = share();
        SegmentName name;

        PLACE(place);
        CHECK(shared);
        CHECK_OK(pd_events_set_name(
            place.events, pd_events_at(place.events, 0),
            (Bytes){.data = (const uint8_t *)asked_for, .size = strlen(asked_for)}));
        CHECK_OK(kill_one(&place, &config, shared, 2, 100, 1000));
        CHECK_OK(last_manifest(&place, ".open", &name, &open));
        CHECK_EQ(open->completeness, SEGMENT_IS_OPEN);
        CHECK_OK(place_open(&place));
        CHECK_OK(recover_all(&place, "default"));
        CHECK_OK(last_manifest(&place, "~.perf.data", &name, &mended));
        CHECK_EQ(mended->completeness, RECOVERED);
        CHECK_STREQ(mended->boot, open->boot);
        CHECK(mended->boot[0]);
        CHECK_STREQ(mended->events[0], asked_for);
        CHECK_EQ(mended->anchors[0].real_ns, open->anchors[0].real_ns);
        CHECK_EQ(mended->anchors[0].boot_ns, open->anchors[0].boot_ns);
        CHECK(mended->samples >= shared->samples);
        CHECK(mended->n_frames > 0);
        CHECK_EQ(mended->weight, mended->samples * 1000000);
        CHECK_OK(compare_coverage(&place, mended));
        munmap(shared, sizeof(*shared));
    }
}

/* What the manifest says of its host is replaced; the segment must keep what it says then. */
static void check_keeps(const char *replacement, const char *boot, const char *host) {
    SessionConfig config = store_session("default", LAYOUT_FILE, 3);
    _cleanup_(manifest_freep) Manifest *mended = NULL;
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(pd_environment_freep) PdEnvironment *environment = NULL;
    Shared *shared = share();
    SegmentName name;
    char last[256], path[500];

    PLACE(place);
    CHECK(shared);
    CHECK_OK(kill_one(&place, &config, shared, 2, 100, 1000));
    CHECK_EQ(shell("sed -i -E '%s' %s/sessions/default/*.json", replacement, place.path), 0);
    CHECK_OK(place_open(&place));
    CHECK_OK(recover_all(&place, "default"));
    CHECK_OK(last_manifest(&place, "~.perf.data", &name, &mended));
    CHECK_STREQ(mended->boot, boot);
    CHECK_EQ(count_names(&place, "default", "~.perf.data", last), 1);
    snprintf(path, sizeof(path), "%s/sessions/default/%s", place.path, last);
    CHECK_OK(pd_reader_open(path, NULL, &reader, NULL));
    CHECK_OK(pd_environment_new(&environment));
    CHECK_OK(pd_environment_from_reader(environment, reader, &(unsigned){0}, &(PdDamage){}));
    CHECK_STREQ(environment->hostname, host);
    CHECK(!environment->has[PD_FEATURE_NRCPUS]);
    /* Of another boot nothing counts behind the last round. */
    CHECK_OK(compare_coverage(&place, mended));
    munmap(shared, sizeof(*shared));
}

#define OTHER_BOOT "s/\"boot\":\"[^\"]*\"/\"boot\":\"another\"/"

TEST(a_segment_of_another_host_keeps_that_host) {
    check_keeps("s/\"host\":\"[^\"]*\"/\"host\":\"elsewhere\"/; " OTHER_BOOT, "another",
                "elsewhere");
}

TEST(a_segment_of_another_boot_says_nothing_of_this_one) {
    check_keeps(OTHER_BOOT, "another", "testhost");
}

TEST(an_unrecoverable_segment_is_set_aside_and_an_empty_one_is_deleted) {
    PLACE(place);
    CHECK_OK(place_open(&place));
    place.store = store_free(place.store);
    CHECK_EQ(shell("cd %s/sessions && mkdir default && cd default && "
                   "echo junk > 00000003-20260101T000000Z.perf.data.open && "
                   "touch 00000004-20260101T000000Z.perf.data.open && "
                   "mkdir 00000005-20260101T000000Z.perf.data.open && "
                   "mkdir 00000006-20260101T000000Z.perf.data.open && "
                   "echo junk > 00000006-20260101T000000Z.perf.data.open/data",
                   place.path),
             0);
    CHECK_OK(place_open(&place));
    CHECK_OK(recover_all(&place, "default"));
    CHECK_EQ(count_names(&place, "default", ".open", NULL), 0);
    CHECK_EQ(count_names(&place, "default", ".damaged", NULL), 2);
    CHECK_EQ(count_names(&place, "default", "", NULL), 2);
    CHECK_EQ(shell("grep -q junk %s/sessions/default/00000003-20260101T000000Z.perf.data.damaged",
                   place.path),
             0);
}

TEST(formats_of_tracepoints_outlive_their_recorder) {
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        SessionConfig config = store_session("default", ways[i].layout, ways[i].level);
        static const uint8_t tracing[] = "\x17\x08\x44tracing, or so";
        char last[256], path[500];
        _cleanup_(pd_reader_freep) PdReader *reader = NULL;
        Bytes body;
        pid_t pid;

        PLACE(place);
        fflush(NULL);
        pid = fork();
        if (pid == 0) {
            SegmentHead head = {.events = place.events,
                                .clock = clock_anchor_now(),
                                .tracing = {tracing, sizeof(tracing)}};
            StoreSession *session;

            if (place_open(&place) < 0 ||
                store_session_new(place.store, &config, false, &session) < 0 ||
                store_session_begin(session, &head) < 0 ||
                write_samples(session, 0, head.clock.monotonic_ns, 10) < 0 ||
                end_sweep(session, 1) < 0 || !wait_written(session, 1))
                _exit(1);
            kill(getpid(), SIGKILL);
        }
        CHECK_EQ(waitpid(pid, NULL, 0), pid);
        CHECK_OK(place_open(&place));
        CHECK_OK(recover_all(&place, "default"));
        CHECK_EQ(count_names(&place, "default", "~.perf.data", last), 1);
        CHECK_EQ(count_names(&place, "default", ".tracing", NULL), 0);
        snprintf(path, sizeof(path), "%s/sessions/default/%s", place.path, last);
        CHECK_OK(pd_reader_open(path, NULL, &reader, NULL));
        CHECK_OK(pd_reader_feature(reader, PD_FEATURE_TRACING_DATA, &body));
        CHECK_EQ(body.size, sizeof(tracing));
        CHECK_EQ(memcmp(body.data, tracing, sizeof(tracing)), 0);
    }
}

TEST_MAIN()
