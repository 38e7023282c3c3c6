/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "make-store.h"
#include "perfdata/feature/environment.h"
#include "store/segment/manifest-rebuild.h"
#include "store/window/listing.h"

/* The files that a killed daemon leaves, and their recovery: by processes that are really killed.
 */

enum { KILLS = 25 };

typedef struct Way {
    Layout layout;
    int level;
} Way;

static const Way ways[] = {
    {LAYOUT_FILE, 3}, {LAYOUT_FILE, 0}, {LAYOUT_DIRECTORY, 3}, {LAYOUT_DIRECTORY, 0}};

/* The records that the child knows to be written, kept where its death does not reach. */
typedef struct Shared {
    _Atomic uint64_t samples, sweeps;
    uint64_t stop_after; /* sweeps; 0: never */
} Shared;

#define PLACE(place)                                                                               \
    _cleanup_(place_done) Place place;                                                             \
    CHECK_OK(place_init(&place))

static Shared *share(void) {
    Shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return shared == MAP_FAILED ? NULL : shared;
}

/* Writes until it is killed: sweeps of four CPUs, a new segment every third. */
static void write_for_ever(Place *place, const SessionConfig *config, Shared *shared,
                           unsigned rotate_each) {
    StoreSession *session;
    uint64_t samples = 0;

    /* A test that is stopped must not leave it behind. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (place_open(place) < 0 || store_session_new(place->store, config, false, &session) < 0)
        _exit(1);
    for (uint64_t sweep = 0;; sweep++) {
        uint64_t now = clock_anchor_now().monotonic_ns;

        if (sweep % rotate_each == 0 && begin_segment(place, session) < 0)
            _exit(1);
        for (unsigned cpu = 0; cpu < 4; cpu++) {
            unsigned n = 1 + (unsigned)(now / 1000 + cpu) % 3000;

            if (write_side_band(session, now) < 0 || write_samples(session, cpu, now, n) < 0)
                _exit(1);
            samples += n;
        }
        if (end_sweep(session, sweep + 1) < 0 || !wait_written(session, sweep + 1))
            _exit(1);
        shared->samples = samples;
        shared->sweeps = sweep + 1;
        while (shared->sweeps == shared->stop_after)
            pause();
    }
}

/* 0 once it wrote `sweeps` and was killed a little later. */
static int kill_one(Place *place, const SessionConfig *config, Shared *shared, uint64_t sweeps,
                    unsigned later_us, unsigned rotate_each) {
    pid_t pid;
    int status;

    shared->samples = shared->sweeps = 0;
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        write_for_ever(place, config, shared, rotate_each);
    for (unsigned i = 0; i < 10000 && shared->sweeps < sweeps; i++)
        usleep(1000);
    usleep(later_us);
    kill(pid, SIGKILL);
    if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
        return -ECHILD;
    return shared->sweeps < sweeps ? -ETIMEDOUT : 0;
}

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

/* The manifest of the last segment of `default` that ends so. */
static int last_manifest(const Place *place, const char *suffix, SegmentName *ret_name,
                         Manifest **ret) {
    char last[256], path[160];
    _cleanup_close_ int fd = -1;
    struct stat st;
    NameKind kind;

    if (count_names(place, "default", suffix, last) == 0)
        return -ENOENT;
    snprintf(path, sizeof(path), "%s/sessions/default", place->path);
    fd = open(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || fstatat(fd, last, &st, 0) < 0 || segment_name_parse(last, &kind, ret_name) < 0)
        return -errno;
    return manifest_read(fd, ret_name, S_ISDIR(st.st_mode), "default", ret);
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
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        SessionConfig config = store_session("default", ways[i].layout, ways[i].level);
        _cleanup_(manifest_freep) Manifest *open = NULL, *mended = NULL;
        Shared *shared = share();
        SegmentName name;

        PLACE(place);
        CHECK(shared);
        CHECK_OK(kill_one(&place, &config, shared, 2, 100, 1000));
        CHECK_OK(last_manifest(&place, ".open", &name, &open));
        CHECK_EQ(open->completeness, SEGMENT_IS_OPEN);
        CHECK_OK(place_open(&place));
        CHECK_OK(recover_all(&place, "default"));
        CHECK_OK(last_manifest(&place, "~.perf.data", &name, &mended));
        CHECK_EQ(mended->completeness, RECOVERED);
        CHECK_STREQ(mended->boot, open->boot);
        CHECK(mended->boot[0]);
        CHECK_EQ(mended->anchors[0].real_ns, open->anchors[0].real_ns);
        CHECK_EQ(mended->anchors[0].boot_ns, open->anchors[0].boot_ns);
        CHECK(mended->samples >= shared->samples);
        CHECK(mended->n_frames > 0);
        CHECK_EQ(mended->weight, mended->samples * 1000000);
        CHECK_OK(compare_coverage(&place, mended));
        munmap(shared, sizeof(*shared));
    }
}

TEST(a_segment_of_another_host_keeps_that_host) {
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
    CHECK_EQ(shell("sed -i -E 's/\"host\":\"[^\"]*\"/\"host\":\"elsewhere\"/; "
                   "s/\"boot\":\"[^\"]*\"/\"boot\":\"another\"/' %s/sessions/default/*.json",
                   place.path),
             0);
    CHECK_OK(place_open(&place));
    CHECK_OK(recover_all(&place, "default"));
    CHECK_OK(last_manifest(&place, "~.perf.data", &name, &mended));
    CHECK_STREQ(mended->boot, "another");
    CHECK_EQ(count_names(&place, "default", "~.perf.data", last), 1);
    snprintf(path, sizeof(path), "%s/sessions/default/%s", place.path, last);
    CHECK_OK(pd_reader_open(path, NULL, &reader, NULL));
    CHECK_OK(pd_environment_new(&environment));
    CHECK_OK(pd_environment_from_reader(environment, reader, &(unsigned){0}, &(PdDamage){}));
    CHECK_STREQ(environment->hostname, "elsewhere");
    CHECK(!environment->has[PD_FEATURE_NRCPUS]);
    /* Of another boot nothing counts behind the last round. */
    CHECK_OK(compare_coverage(&place, mended));
    munmap(shared, sizeof(*shared));
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

static int write_two(Place *place, Way way, bool facts) {
    SessionConfig config = store_session("default", way.layout, way.level);
    StoreSession *session = NULL;
    int r = store_session_new(place->store, &config, false, &session);

    if (r == 0)
        r = begin_segment(place, session);
    for (uint64_t sweep = 1; r == 0 && sweep <= 5; sweep++) {
        uint64_t now = clock_anchor_now().monotonic_ns;

        r = write_side_band(session, now);
        for (unsigned cpu = 0; r == 0 && cpu < 3; cpu++)
            r = write_samples(session, cpu, now, 700 * (cpu + 1));
        if (r == 0)
            r = end_sweep(session, sweep);
        if (r == 0 && facts)
            r = store_session_note(session, &(SegmentFacts){.inferred = 3,
                                                            .gap = &(PdGap){
                                                                .from_ns = now,
                                                                .to_ns = now + 5,
                                                                .cpu = 1,
                                                                .reason = PD_GAP_OFFLINE,
                                                            }});
    }
    store_session_close(session);
    return r;
}

static int compare_manifests(const Manifest *a, const Manifest *b) {
#define SAME(member)                                                                               \
    if (a->member != b->member) {                                                                  \
        printf("# " #member ": %" PRIu64 ", rebuilt %" PRIu64 "\n", (uint64_t)a->member,           \
               (uint64_t)b->member);                                                               \
        return -EINVAL;                                                                            \
    }
    SAME(sequence)
    SAME(directory)
    SAME(completeness)
    SAME(first_ns)
    SAME(last_ns)
    SAME(samples)
    SAME(raw_bytes)
    SAME(stored_bytes)
    SAME(lost)
    SAME(weight)
    SAME(sensitive)
    SAME(n_events)
    SAME(anchors[0].monotonic_ns)
    SAME(anchors[0].real_ns)
    for (uint32_t cpu = 0; cpu < MANIFEST_CPUS_MAX; cpu++)
        if (manifest_has_cpu(a, cpu) != manifest_has_cpu(b, cpu))
            return -EINVAL;
    return strcmp(a->session, b->session) || strcmp(a->host, b->host) ||
                   strcmp(a->recorder, b->recorder) || strcmp(a->events[0], b->events[0])
               ? -EINVAL
               : 0;
}

static int compare_indices(const Manifest *a, const Manifest *b) {
    if (a->n_frames != b->n_frames) {
        printf("# %zu frames, rebuilt %zu\n", a->n_frames, b->n_frames);
        return -EINVAL;
    }
    for (size_t i = 0; i < a->n_frames; i++) {
        const ManifestFrame *x = &a->frames[i], *y = NULL;

        /* Files are walked one after the other, and written side by side. */
        for (size_t k = 0; !y && k < b->n_frames; k++)
            if (b->frames[k].file == x->file && b->frames[k].offset == x->offset)
                y = &b->frames[k];
        if (!y || x->raw != y->raw || x->kind != y->kind || x->first_ns != y->first_ns ||
            x->last_ns != y->last_ns) {
            printf("# frame %zu differs\n", i);
            return -EINVAL;
        }
    }
    return 0;
}

TEST(a_manifest_rebuilt_from_the_data_equals_the_written_one) {
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        _cleanup_(manifest_freep) Manifest *written = NULL, *rebuilt = NULL;
        _cleanup_close_ int fd = -1;
        SegmentName name;
        char path[160];

        PLACE(place);
        CHECK_OK(place_open(&place));
        CHECK_OK(write_two(&place, ways[i], true));
        CHECK_OK(last_manifest(&place, ".perf.data", &name, &written));
        CHECK_EQ(written->completeness, COMPLETE);
        CHECK_EQ(written->samples, 5 * 4200);
        CHECK_EQ(written->inferred, 15);
        CHECK_EQ(written->coverage.n_gaps, 5);
        CHECK_EQ(written->n_anchors, 2);
        snprintf(path, sizeof(path), "%s/sessions/default", place.path);
        fd = open(path, O_RDONLY | O_DIRECTORY);
        CHECK_OK(manifest_rebuild(fd, &name, "default", &rebuilt));
        CHECK_OK(compare_manifests(written, rebuilt));
        if (ways[i].level > 0)
            CHECK_OK(compare_indices(written, rebuilt));
    }
}

TEST(an_index_has_the_positions_of_the_frames) {
    _cleanup_(manifest_freep) Manifest *m = NULL;
    _cleanup_close_ int fd = -1;
    SegmentName name;
    char last[256], path[500];

    PLACE(place);
    CHECK_OK(place_open(&place));
    CHECK_OK(write_two(&place, ways[0], false));
    CHECK_OK(last_manifest(&place, ".perf.data", &name, &m));
    CHECK_EQ(count_names(&place, "default", ".perf.data", last), 1);
    snprintf(path, sizeof(path), "%s/sessions/default/%s", place.path, last);
    fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    /* The preamble, then side-band and samples in each of five sweeps. */
    CHECK_EQ(m->n_frames, 11);
    for (size_t i = 0; i < m->n_frames; i++) {
        uint8_t head[8];

        CHECK_EQ(pread(fd, head, sizeof(head), (off_t)m->frames[i].offset), 8);
        CHECK(load_u32(head, false) == PD_RECORD_COMPRESSED || m->frames[i].raw < 512);
        CHECK_EQ(m->frames[i].kind, i > 0 && i % 2 == 0 ? STORE_SAMPLES : STORE_SIDE_BAND);
        CHECK(m->frames[i].last_ns >= m->frames[i].first_ns && m->frames[i].first_ns > 0);
    }
}

TEST(missing_and_bad_manifests_are_rebuilt) {
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        SessionConfig config = store_session("default", ways[i].layout, ways[i].level);
        const char *file = ways[i].layout == LAYOUT_FILE ? "*.json" : "*/manifest.json";
        StoreSession *session = NULL;
        int found = -1;

        PLACE(place);
        for (unsigned k = 0; k < 2; k++) {
            CHECK_OK(place_again(&place));
            CHECK_OK(write_two(&place, ways[i], false));
        }
        place.store = store_free(place.store);
        CHECK_EQ(shell("cd %s/sessions/default && set -- %s && rm $1 && echo '{' > $2", place.path,
                       file),
                 0);
        CHECK_OK(place_open(&place));
        CHECK_OK(store_session_new(place.store, &config, false, &session));
        for (unsigned k = 0; k < 5000 && found != 0; k++) {
            usleep(1000);
            found =
                shell("cd %s/sessions/default && [ $(cat %s | grep -c '\"samples\":21000') = 2 ]",
                      place.path, file);
        }
        CHECK_EQ(found, 0);
        store_session_close(session);
    }
}

TEST_MAIN()
