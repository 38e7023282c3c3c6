/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/ring/tag.h"

#include <poll.h>
#include <sys/prctl.h>

#include "make-sampler.h"
#include "util/text.h"

/*
 * One recorder after another. A sampler that is freed leaves its events with the keeper, just as a
 * process that dies does; the test of a killed one is a real process.
 */

static int succeed(Fixture *f, const SessionConfig *config) {
    int r;

    f->sampler = sampler_free(f->sampler);
    r = make_sampler(f->keeper, &f->sampler);
    if (r == 0)
        r = sampler_add(f->sampler, config, &f->session);
    if (r == 0)
        sampler_forget_rest(f->sampler);
    return r;
}

TEST(rings_continue_where_the_earlier_recorder_gave_back) {
    SessionConfig config = clock_config("default", 999);
    uint64_t given_back, ids[2];
    uint32_t before;
    CpuRing *ring;
    FIXTURE(f, config);

    CHECK_OK(sampler_enable(f.session));
    CHECK(wait_for_bytes(f.session, 2000));
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    sampler_note_sweep(f.session, 1);
    sampler_written(f.session, 1);
    CHECK(wait_for_bytes(f.session, 2000));
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    ring = f.session->rings.rings[0];
    given_back = ring_tail(&ring->ring);
    CHECK(given_back > 0);
    CHECK(given_back < fullest(f.session)->taken);
    ids[0] = ring->counters[0].id;
    before = made_count(f.keeper);
    CHECK_OK(succeed(&f, &config));
    CHECK(sampler_was_taken_over(f.session));
    ring = f.session->rings.rings[0];
    ids[1] = ring->counters[0].id;
    CHECK_EQ(ids[0], ids[1]);
    CHECK_EQ(ring->taken, given_back);
    CHECK_EQ(made_count(f.keeper), before);
    CHECK_EQ(pd_events_at(sampler_events(f.session), 0)->attr.sample_period, 999ULL);
    CHECK_EQ(pd_events_at(sampler_events(f.session), 0)->attr.wakeup_events,
             f.session->ring_bytes / 8 * 3);
    CHECK(wait_for_bytes(f.session, 500));
    CHECK_OK(sampler_enable(f.session));
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
}

static int write_taken(Heard *heard, int to) {
    for (uint32_t cpu = 0; cpu < HEARD_CPUS; cpu++) {
        Buffer *taken = &heard->samples[0][cpu];
        uint32_t head[2] = {cpu, (uint32_t)taken->size};

        if (taken->size == 0)
            continue;
        if (write(to, head, sizeof(head)) != sizeof(head) ||
            write(to, taken->data, taken->size) != (ssize_t)taken->size)
            return -EIO;
        buffer_clear(taken);
    }
    return 0;
}

/* A recorder that takes samples for a while and sometimes writes them to a pipe, until it is
 * killed. What is in the pipe counts as written; only that is given back. */
static void record_until_killed(Keeper *keeper, const SessionConfig *config, int to) {
    Heard heard = {};
    Sampler *sampler;
    SamplerSession *session;

    if (make_sampler(keeper, &sampler) < 0 || sampler_add(sampler, config, &session) < 0 ||
        !sampler_was_taken_over(session))
        _exit(1);
    for (uint64_t sweep = 1;; sweep++) {
        if (sweep_all(sampler, 700, &heard) < 0)
            _exit(2);
        sampler_note_sweep(session, sweep);
        buffer_clear(&heard.side_band);
        sleep_ms(3);
        if (sweep % 4 != 0)
            continue;
        if (write_taken(&heard, to) < 0)
            _exit(3);
        sampler_written(session, sweep);
    }
}

/* Reads until the pipe is empty; drops a write that was cut short by the kill, like a store
 * would. */
static int read_written(int from, Buffer *ret_by_cpu) {
    for (;;) {
        _cleanup_(buffer_done) Buffer part = {};
        uint32_t head[2];
        size_t have = 0;

        if (read(from, head, sizeof(head)) != sizeof(head))
            return 0;
        if (head[0] >= HEARD_CPUS || !buffer_reserve(&part, head[1]))
            return -EBADMSG;
        while (have < head[1]) {
            ssize_t n = read(from, part.data + have, head[1] - have);

            if (n <= 0)
                return 0;
            have += (size_t)n;
        }
        buffer_append(&ret_by_cpu[head[0]], part.data, have);
    }
}

static uint64_t last_time(Bytes bytes, const PdEvents *events) {
    return read_samples(bytes, events, NULL, NULL).last_ns;
}

/* The samples of the killed recorder, then those after it without the ones that were written: none
 * may be missing or doubled. The rings, which were never given back, have the truth. */
TEST(a_killed_recorder_loses_and_duplicates_nothing) {
    SessionConfig config = clock_config("default", 4999);
    Buffer written[HEARD_CPUS] = {};
    int ends[2], status;
    size_t total = 0;
    pid_t child;
    FIXTURE(f, config);

    CHECK_EQ(pipe(ends), 0);
    fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
    CHECK_OK(sampler_enable(f.session));
    child = fork();
    if (child == 0)
        record_until_killed(f.keeper, &config, ends[1]);
    close(ends[1]);
    CHECK_EQ(poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, 1, 30000), 1);
    /* At some moment after the first write. */
    sleep_ms((unsigned)(clock_monotonic_ns() % 50));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    CHECK_OK(read_written(ends[0], written));
    close(ends[0]);
    CHECK_OK(succeed(&f, &config));
    CHECK(sampler_was_taken_over(f.session));
    CHECK_OK(sampler_enable(f.session));
    CHECK(wait_for_bytes(f.session, 2000));
    CHECK_OK(sampler_disable(f.session));
    CHECK_OK(sweep_all(f.sampler, 700, &f.heard));
    for (size_t i = 0; i < f.session->rings.n; i++) {
        CpuRing *ring = f.session->rings.rings[i];
        Bytes before = buffer_bytes(&written[ring->cpu]);
        Bytes after = buffer_bytes(&f.heard.samples[0][ring->cpu]);
        uint64_t known = last_time(before, sampler_events(f.session));
        uint64_t head = ring_head(&ring->ring), doubled = 0;

        /* The samples that the next recorder leaves out: all up to the newest that is written. */
        while (doubled < after.size) {
            PdRecord record = pd_record_at(after.data + doubled, false);
            PdStamp stamp;

            CHECK_OK(pd_events_stamp(sampler_events(f.session), &record, &stamp));
            if (stamp.time > known)
                break;
            doubled += record.size;
        }
        CHECK_EQ(before.size + after.size - doubled, head);
        CHECK(head <= ring->ring.size || doubled <= ring->ring.size / 2);
        total += before.size;
        buffer_done(&written[ring->cpu]);
    }
    CHECK(total > 0);
}

TEST(samples_of_an_ended_process_are_taken_over) {
    pid_t child = spin_in_child();
    SessionConfig config = clock_config("default", 999);
    size_t n = 0;
    int r;
    _cleanup_(fixture_done) Fixture f = {.keeper = calloc(1, sizeof(Keeper))};

    NEED_EVENTS(f.keeper);
    CHECK_OK(make_sampler(f.keeper, &f.sampler));
    config.n_pids = 1;
    config.pids[0] = (uint32_t)child;
    r = sampler_add(f.sampler, &config, &f.session);
    if (r == 0)
        r = sampler_enable(f.session);
    if (r == 0 && !wait_for_bytes(f.session, 1000))
        r = -ETIME;
    end_child(child);
    CHECK_OK(r);
    CHECK_OK(succeed(&f, &config));
    CHECK(sampler_was_taken_over(f.session));
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    for (size_t i = 0; i < HEARD_CPUS; i++)
        n += f.heard.samples[0][i].size;
    CHECK(n >= 1000);
}

/* Everything runs on one CPU, so that bytes can be compared. */
TEST(recent_side_band_is_read_again) {
    SessionConfig config = clock_config("default", 99);
    _cleanup_(buffer_done) Buffer first = {};
    cpu_set_t before, only;
    size_t at, n, kept;
    FIXTURE(f, config);

    sched_getaffinity(0, sizeof(before), &before);
    CPU_ZERO(&only);
    CPU_SET(f.sampler->online.cpus[0], &only);
    sched_setaffinity(0, sizeof(only), &only);
    for (unsigned i = 0; i < 3 * SIDE_BAND_RING_BYTES / 4 / 64; i++) {
        prctl(PR_SET_NAME, i % 2 ? "a" : "b");
        if (i % 256 == 0)
            CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    }
    sched_setaffinity(0, sizeof(before), &before);
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    first = f.heard.side_band;
    f.heard.side_band = (Buffer){};
    kept = f.sampler->side_band.rings[0]->taken - ring_tail(&f.sampler->side_band.rings[0]->ring);
    CHECK(kept >= SIDE_BAND_RING_BYTES / 4);
    CHECK_OK(succeed(&f, &config));
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    n = f.heard.side_band.size;
    CHECK(n >= kept);
    /* Its first record was heard before, and so was what follows it. */
    for (at = 0; at + 4096 <= first.size; at += 8)
        if (memcmp(first.data + at, f.heard.side_band.data, 4096) == 0)
            break;
    CHECK(at + 4096 <= first.size);
    CHECK(first.size - at >= SIDE_BAND_RING_BYTES / 4);
}

TEST(recent_data_mappings_are_read_again) {
    SessionConfig config = clock_config("stacks", 99);
    uint64_t ids[2];
    uint32_t before;
    FIXTURE(f, config);

    sampler_remove(f.session);
    config.call_graph = CALL_GRAPH_DWARF;
    config.stack_bytes = 1024;
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    before = made_count(f.keeper);
    ids[0] = f.sampler->data.rings[0]->counters[0].id;
    CHECK_OK(succeed(&f, &config));
    CHECK(sampler_records_data(f.sampler));
    CHECK_EQ(made_count(f.keeper), before);
    CHECK_EQ(f.sampler->data.n, f.sampler->online.n);
    ids[1] = f.sampler->data.rings[0]->counters[0].id;
    CHECK_EQ(ids[0], ids[1]);
    /* No session of the next recorder samples stacks. */
    config.call_graph = CALL_GRAPH_NONE;
    config.stack_bytes = 0;
    CHECK_OK(succeed(&f, &config));
    CHECK(!sampler_records_data(f.sampler));
    CHECK_EQ(f.sampler->data.n, (size_t)0);
    CHECK_EQ(made_count(f.keeper), before - (uint32_t)f.sampler->online.n);
}

TEST(a_session_with_another_rate_is_another_session) {
    SessionConfig config = clock_config("default", 99);
    uint64_t before;
    FIXTURE(f, config);

    before = f.session->rings.rings[0]->counters[0].id;
    config.frequency_hz = 199;
    CHECK_OK(succeed(&f, &config));
    CHECK(!sampler_was_taken_over(f.session));
    CHECK(f.session->rings.rings[0]->counters[0].id != before);
    CHECK_EQ(made_count(f.keeper), 2 * (uint32_t)f.sampler->online.n);
}

TEST(a_changed_store_key_keeps_the_session) {
    SessionConfig config = clock_config("default", 99);
    FIXTURE(f, config);

    config.rotate_interval_ns = 1000000000;
    config.zstd_level = 9;
    CHECK_OK(succeed(&f, &config));
    CHECK(sampler_was_taken_over(f.session));
}

TEST(a_changed_rate_limit_keeps_running_events) {
    SessionConfig config = clock_config("default", 999);
    FIXTURE(f, config);

    f.sampler = sampler_free(f.sampler);
    CHECK_OK(sampler_new(&(SamplerOptions){.keeper = f.keeper,
                                           .buffer_total_bytes = 1 << 20,
                                           .max_frequency_hz = 500},
                         &f.sampler));
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK(sampler_was_taken_over(f.session));
}

static bool says(const SamplerSession *session, const char *mode, const char *reason) {
    _cleanup_(buffer_done) Buffer text = {};

    sampler_put_call_graph(session, &text);
    text_puts(&text, " ");
    sampler_put_call_graph_reason(session, &text);
    text_putc(&text, '\0');
    return strncmp((const char *)text.data, mode, strlen(mode)) == 0 &&
           strstr((const char *)text.data, reason);
}

TEST(choice_of_call_graphs_lasts_as_long_as_the_events) {
    static const char *const modes[] = {"unwind:16384 ", "fp "};
    const uint64_t budgets[] = {(uint64_t)HEARD_CPUS * 64 << 20, 1 << 20};
    SessionConfig config = clock_config("default", 99);
    FIXTURE(f, config);

    config.call_graph = CALL_GRAPH_AUTO;
    for (size_t i = 0; i < ARRAY_SIZE(budgets); i++) {
        SamplerOptions options = {.keeper = f.keeper, .buffer_total_bytes = budgets[i]};

        sampler_remove(f.session);
        f.sampler->options.buffer_total_bytes = budgets[i];
        CHECK_OK(sampler_add(f.sampler, &config, &f.session));
        CHECK(says(f.session, modes[i], i == 0 ? "can unwind" : "two seconds"));
        options.buffer_total_bytes = budgets[1 - i];
        f.sampler = sampler_free(f.sampler);
        CHECK_OK(sampler_new(&options, &f.sampler));
        CHECK_OK(sampler_add(f.sampler, &config, &f.session));
        CHECK(sampler_was_taken_over(f.session));
        CHECK(says(f.session, modes[i], "The recorder before this one"));
        CHECK_EQ(sampler_is_unwound(f.session), i == 0);
        CHECK_EQ(sampler_stack_bytes(f.session), i == 0 ? 16384U : 0U);
        CHECK(
            !(pd_events_at(sampler_events(f.session), 0)->attr.sample_type & PD_SAMPLE_STACK_USER));
    }
}

TEST(events_on_cpus_that_are_no_longer_wanted_are_closed) {
    SessionConfig config = clock_config("default", 99);
    size_t n_all;
    FIXTURE(f, config);

    n_all = sampler_n_cpus(f.session);
    if (n_all < 2)
        TEST_SKIP("only one CPU");
    snprintf(config.cpus, sizeof(config.cpus), "0");
    CHECK_OK(succeed(&f, &config));
    CHECK(sampler_was_taken_over(f.session));
    CHECK_EQ(sampler_n_cpus(f.session), (size_t)1);
    CHECK_EQ(made_count(f.keeper), (uint32_t)n_all + 1);
    config.cpus[0] = '\0';
    CHECK_OK(succeed(&f, &config));
    CHECK_EQ(sampler_n_cpus(f.session), n_all);
    CHECK_EQ(made_count(f.keeper), 2 * (uint32_t)n_all);
}

TEST(a_partly_opened_cpu_is_opened_again) {
    SessionConfig config = clock_config("default", 99);
    FIXTURE(f, config);

    sampler_remove(f.session);
    snprintf(config.events, sizeof(config.events), "cpu-clock,task-clock");
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_OK(keeper_close_event(f.keeper, f.session->rings.rings[0]->counters[1].slot));
    CHECK_OK(succeed(&f, &config));
    CHECK_EQ(sampler_n_cpus(f.session), f.sampler->online.n);
    CHECK_EQ(made_count(f.keeper), 3 * (uint32_t)f.sampler->online.n);
    for (size_t i = 0; i < f.session->rings.n; i++)
        CHECK_EQ(f.session->rings.rings[i]->n_counters, (size_t)2);
}

TEST(events_of_removed_sessions_are_closed) {
    SessionConfig config = clock_config("default", 99), other = clock_config("other", 99);
    SamplerSession *two;
    FIXTURE(f, config);

    CHECK_OK(sampler_add(f.sampler, &other, &two));
    CHECK_EQ(made_count(f.keeper), 3 * (uint32_t)f.sampler->online.n);
    CHECK_OK(succeed(&f, &config));
    CHECK_EQ(made_count(f.keeper), 2 * (uint32_t)f.sampler->online.n);
    CHECK_EQ(f.sampler->n_held, (size_t)0);
}

TEST(events_with_an_unknown_tag_are_closed) {
    SessionConfig config = clock_config("default", 99);
    FIXTURE(f, config);

    f.keeper->events[f.session->rings.rings[0]->counters[0].slot].event.tag[0]++;
    CHECK_OK(succeed(&f, &config));
    CHECK_EQ(sampler_n_cpus(f.session), f.sampler->online.n);
    CHECK_EQ(made_count(f.keeper), 2 * (uint32_t)f.sampler->online.n);
}

static SessionConfig unwind_config(void) {
    SessionConfig config = clock_config("default", 99);

    config.call_graph = CALL_GRAPH_UNWIND;
    config.stack_bytes = 4096;
    return config;
}

TEST(memory_for_unwound_samples_is_taken_over_with_the_rings) {
    SessionConfig config = unwind_config(), plain = clock_config("default", 99);
    size_t size, again;
    uint32_t before;
    uint8_t *memory;
    FIXTURE(f, config);

    if (!sampler_is_unwound(f.session))
        TEST_SKIP("stacks cannot be unwound here");
    memory = sampler_take_arena(f.session, &size);
    CHECK(memory != NULL);
    CHECK(size >= 1 << 20);
    memory[size - 1] = 77;
    (void)munmap(memory, size);
    before = made_count(f.keeper);
    CHECK_OK(succeed(&f, &config));
    CHECK(sampler_was_taken_over(f.session));
    CHECK_EQ(made_count(f.keeper), before);
    memory = sampler_take_arena(f.session, &again);
    CHECK(memory != NULL);
    CHECK_EQ(again, size);
    CHECK_EQ(memory[size - 1], 77);
    CHECK(sampler_take_arena(f.session, &again) == NULL);
    (void)munmap(memory, size);
    /* Who unwinds nothing has none, and what is left of it is closed. */
    CHECK_OK(succeed(&f, &plain));
    CHECK(sampler_take_arena(f.session, &again) == NULL);
    CHECK_EQ(made_count(f.keeper), 2 * (uint32_t)f.sampler->online.n);
}

TEST(memory_of_a_session_that_ends_is_closed) {
    SessionConfig config = unwind_config();
    FIXTURE(f, config);

    if (!sampler_is_unwound(f.session))
        TEST_SKIP("stacks cannot be unwound here");
    f.session = sampler_remove(f.session);
    CHECK_EQ(made_count(f.keeper), (uint32_t)f.sampler->online.n);
}

TEST(memory_with_a_strange_tag_is_closed) {
    SessionConfig config = unwind_config();
    MadeEvent *made;
    uint8_t *memory;
    size_t size;
    FIXTURE(f, config);

    if (!sampler_is_unwound(f.session))
        TEST_SKIP("stacks cannot be unwound here");
    made = &f.keeper->events[f.session->arena.slot];
    memory = sampler_take_arena(f.session, &size);
    memory[0] = 77;
    (void)munmap(memory, size);
    made->event.tag[0]++;
    CHECK_OK(succeed(&f, &config));
    CHECK(!made->is_open);
    memory = sampler_take_arena(f.session, &size);
    CHECK(memory != NULL);
    CHECK_EQ(memory[0], 0);
    (void)munmap(memory, size);
}

TEST(losses_between_samples_are_records_in_the_batch) {
    SessionConfig config = clock_config("default", 4999);
    uint64_t lost = 0;
    FIXTURE(f, config);

    config.buffer_bytes = 0;
    sampler_remove(f.session);
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_OK(sampler_enable(f.session));
    CHECK(wait_for_bytes(f.session, f.session->ring_bytes - 300));
    sleep_ms(50);
    CHECK_OK(succeed(&f, &config));
    CHECK(sampler_was_taken_over(f.session));
    for (unsigned i = 0; i < 100 && lost == 0; i++) {
        sleep_ms(10);
        CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
        for (size_t k = 0; k < f.session->rings.n; k++)
            lost += f.session->rings.rings[k]->counters[0].lost;
    }
    CHECK(lost > 0);
}

TEST_MAIN()
