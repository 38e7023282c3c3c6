/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-scene.h"

/* Snapshots of some of the samples only. */

TEST(filters_that_match_nothing_keep_no_snapshot_and_suggest_names) {
    static const char *const comms[] = {"workre"}, *const right[] = {"worker"},
                             *const units[] = {"shop"};
    static const uint32_t pids[] = {8};
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("typo");

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 2));
    wanted.filter = (SnapshotFilter){.comms = comms, .n_comms = 1};
    CHECK_OK(make(&s, &wanted));
    CHECK(s.failed);
    CHECK_EQ(s.failure.error, SNAPSHOT_NO_MATCH);
    CHECK_STREQ(s.failure.text, "comm 'workre'");
    CHECK_EQ(s.failure.near.n, 1);
    CHECK_STREQ(s.failure.near.names[0].name, "worker");
    /* Of two filters the one is named that nothing passes. */
    wanted.filter = (SnapshotFilter){.comms = right, .n_comms = 1, .pids = pids, .n_pids = 1};
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.failure.error, SNAPSHOT_NO_MATCH);
    CHECK_STREQ(s.failure.text, "process 8");
    CHECK_EQ(s.failure.near.n, 0);
    wanted.filter = (SnapshotFilter){.units = units, .n_units = 1, .pids = pids, .n_pids = 1};
    CHECK_OK(make(&s, &wanted));
    CHECK_STREQ(s.failure.text, "process 8 and unit 'shop.service'");
    CHECK_EQ(count_left(&s), 0);
    /* A window without a sample is an answer where nothing was filtered. */
    wanted.filter = (SnapshotFilter){};
    wanted.since_ns = s.first_ns[0] + 100;
    wanted.until_ns = s.first_ns[0] + 900;
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    CHECK_EQ(s.info.samples, 0);
}

/* A segment before, one with other users' memory, and one behind it. */
static int record_memory(Scene *s) {
    int r = 0;

    for (unsigned i = 0; r == 0 && i < 3; i++) {
        SessionConfig config = store_session("default", LAYOUT_FILE, 3);

        s->session = store_session_close(s->session);
        r = store_session_new(s->place.store, &config, i == 1, &s->session);
        if (r == 0)
            r = begin_segment(&s->place, s->session);
        s->first_ns[i] = clock_anchor_now().monotonic_ns;
        if (r == 0)
            r = write_samples(s->session, 0, s->first_ns[i], SAMPLES);
        if (r == 0)
            r = end_sweep(s->session, 1);
        if (r == 0 && !wait_written(s->session, 1))
            r = -ETIMEDOUT;
        usleep(2000);
    }
    return r;
}

TEST(a_window_with_memory_of_other_users_is_refused) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("cut");

    CHECK_OK(scene_init(&s));
    CHECK_OK(record_memory(&s));
    /* Nothing is known of its segments after a restart. */
    s.session = store_session_close(s.session);
    end_engine(&s);
    CHECK_OK(place_again(&s.place));
    CHECK_OK(begin_engine(&s));
    wanted.privileged = false;
    CHECK_OK(make(&s, &wanted));
    CHECK(s.failed);
    CHECK_EQ(s.failure.error, SNAPSHOT_FORBIDDEN);
    wanted.since_ns = s.first_ns[1] + 500 * 1000;
    CHECK_OK(make(&s, &wanted));
    CHECK(s.failed);
    CHECK_EQ(s.failure.error, SNAPSHOT_FORBIDDEN);
    CHECK_EQ(count_left(&s), 0);
    wanted.since_ns = s.first_ns[2];
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed && !s.info.sensitive);
    wanted.name = "before";
    wanted.since_ns = 0;
    wanted.until_ns = s.first_ns[0] + 1000 * 1000;
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed && !s.info.sensitive);
    wanted.name = "all";
    wanted.until_ns = 0;
    wanted.privileged = true;
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed && s.info.sensitive);
    CHECK_EQ(s.info.samples, 3 * SAMPLES);
}

TEST(filters_for_cpus_processes_and_threads_keep_their_samples) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("one");
    static const uint32_t pids[] = {8, 7}, others[] = {8};
    static const char *const comms[] = {"worker"}, *const strangers[] = {"work"};

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 2));
    wanted.filter = (SnapshotFilter){.by_cpu = true, .cpus = {2}};
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.info.samples, 2 * SAMPLES);
    wanted = request("pids");
    wanted.filter = (SnapshotFilter){.pids = pids, .n_pids = 2};
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.info.samples, 4 * SAMPLES);
    wanted = request("others");
    wanted.filter = (SnapshotFilter){.pids = others, .n_pids = 1};
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.failure.error, SNAPSHOT_NO_MATCH);
    wanted = request("threads");
    wanted.filter = (SnapshotFilter){.tids = pids, .n_tids = 2};
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.info.samples, 4 * SAMPLES);
    wanted = request("other-threads");
    wanted.filter = (SnapshotFilter){.pids = pids, .n_pids = 2, .tids = others, .n_tids = 1};
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.failure.error, SNAPSHOT_NO_MATCH);
    CHECK_STREQ(s.failure.text, "thread 8");
    wanted = request("strangers");
    wanted.filter = (SnapshotFilter){.comms = strangers, .n_comms = 1};
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.failure.error, SNAPSHOT_NO_MATCH);
    wanted = request("comms");
    wanted.filter = (SnapshotFilter){.comms = comms, .n_comms = 1};
    CHECK_OK(make(&s, &wanted));
    CHECK(s.info.samples <= 4 * SAMPLES);
}

TEST(a_filter_for_an_unrecorded_cpu_is_refused_by_name) {
    static const struct {
        SnapshotFilter filter;
        const char *text; /* NULL: it is made */
    } rows[] = {{{.by_cpu = true, .cpus = {1 | 1 << 3}}, "CPU 3"},
                {{.by_cpu = true, .cpus = {0, 0, 2}}, "CPU 17"},
                {{.by_cpu = true, .cpus = {3}}, NULL}};
    _cleanup_(scene_done) Scene s;

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 2));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        SnapshotRequest wanted = request("some");

        wanted.filter = rows[i].filter;
        CHECK_OK(make(&s, &wanted));
        CHECK_EQ(s.failed, rows[i].text != NULL);
        if (!rows[i].text)
            continue;
        CHECK_EQ(s.failure.error, SNAPSHOT_NO_MATCH);
        CHECK_STREQ(s.failure.text, rows[i].text);
        CHECK_EQ(count_left(&s), 0);
    }
}

/* How a recording begins a process that was born at that time, and what happened to it next. */
static void put_life(Buffer *b, uint64_t time, const char *parent, const char *name) {
    PdTrailer trailer = store_trailer(time);
    const PdTask fork = {.pid = 7, .tid = 7, .ppid = 1, .ptid = 1, .time = time};
    PdComm comm = {
        .pid = 7, .tid = 7, .comm = {.data = (const uint8_t *)parent, .size = strlen(parent)}};

    pd_emit_task(b, &trailer, PD_RECORD_FORK, PD_MISC_FORK_EXEC, &fork);
    pd_emit_comm(b, &trailer, &comm);
    trailer.time = time + 10;
    comm.comm = (Bytes){.data = (const uint8_t *)name, .size = strlen(name)};
    pd_emit_comm(b, &trailer, &comm);
}

/* A real FORK, of a parent that the segment holds. */
static void put_child(Buffer *b, uint64_t time) {
    PdTrailer trailer = store_trailer(time);
    const PdTask fork = {.pid = 8, .tid = 8, .ppid = 7, .ptid = 7, .time = time};

    pd_emit_task(b, &trailer, PD_RECORD_FORK, 0, &fork);
}

static int begin_bare_segment(Scene *s) {
    SegmentHead head = {.events = s->place.events, .clock = clock_anchor_now()};
    int r;

    put_kernel(&head.preamble, head.clock.monotonic_ns);
    pd_emit_mark(&head.preamble, PD_RECORD_FINISHED_INIT);
    r = store_session_begin(s->session, &head);
    buffer_done(&head.preamble);
    return r;
}

/* As a sweep finds a pid's second life on one CPU before it finds the first one on another. */
static int record_lives_out_of_order(Scene *s) {
    SessionConfig config = store_session("default", LAYOUT_FILE, 3);
    StoreBatch lives[] = {{.kind = STORE_SIDE_BAND}, {.kind = STORE_SIDE_BAND}};
    StoreBatch child = {.kind = STORE_SAMPLES, .cpu = 0, .samples = 100};
    int r = store_session_new(s->place.store, &config, false, &s->session);

    /* Not in the first segment, which nothing was told before. */
    if (r == 0)
        r = begin_bare_segment(s);
    if (r == 0)
        r = write_samples(s->session, 0, clock_anchor_now().monotonic_ns, 10);
    if (r == 0)
        r = end_sweep(s->session, ++s->sweep);
    usleep(2000);
    if (r == 0)
        r = begin_bare_segment(s);
    s->first_ns[0] = clock_anchor_now().monotonic_ns;
    put_life(&lives[0].records, s->first_ns[0] + 600000, "parent", "second");
    put_child(&lives[0].records, s->first_ns[0] + 600100);
    put_life(&lives[1].records, s->first_ns[0] + 1000, "parent", "first");
    child.first_ns = s->first_ns[0] + 1100000;
    child.last_ns = child.first_ns + 99 * 1000;
    for (unsigned i = 0; i < child.samples; i++) {
        put_store_sample(&child.records, 0, child.first_ns + i * 1000ULL);
        store_u32(child.records.data + child.records.size - 24, 8, false);
        store_u32(child.records.data + child.records.size - 20, 8, false);
    }
    if (r == 0)
        r = store_session_write(s->session, &lives[0]);
    if (r == 0)
        r = write_samples(s->session, 0, s->first_ns[0] + 601000, 300);
    if (r == 0)
        r = store_session_write(s->session, &child);
    if (r == 0)
        r = end_sweep(s->session, ++s->sweep);
    if (r == 0)
        r = store_session_write(s->session, &lives[1]);
    if (r == 0)
        r = write_samples(s->session, 1, s->first_ns[0] + 2000, 300);
    if (r == 0)
        r = end_sweep(s->session, ++s->sweep);
    buffer_done(&lives[0].records);
    buffer_done(&lives[1].records);
    buffer_done(&child.records);
    return r == 0 && !wait_written(s->session, s->sweep) ? -ETIMEDOUT : r;
}

TEST(each_process_with_a_reused_pid_keeps_its_name) {
    static const struct {
        const char *comm;
        unsigned samples;
    } lives[] = {{"first", 300}, {"second", 400}, {"parent", 0}};
    _cleanup_(scene_done) Scene s;

    CHECK_OK(scene_init(&s));
    CHECK_OK(record_lives_out_of_order(&s));
    for (size_t i = 0; i < ARRAY_SIZE(lives); i++) {
        SnapshotRequest wanted = request(lives[i].comm);

        wanted.filter = (SnapshotFilter){.comms = &lives[i].comm, .n_comms = 1};
        CHECK_OK(make(&s, &wanted));
        CHECK_EQ(s.failed, lives[i].samples == 0);
        if (s.failed)
            CHECK_EQ(s.failure.error, SNAPSHOT_NO_MATCH);
        else
            CHECK_EQ(s.info.samples, lives[i].samples);
    }
}

TEST_MAIN()
