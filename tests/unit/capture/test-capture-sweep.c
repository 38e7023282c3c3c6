/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/sampler/sampler.h"

#include <pthread.h>
#include <sys/prctl.h>

#include "capture/plan/limit.h"
#include "make-sampler.h"

/* The records that leave the rings, their order and when their room is free again; real events. */

/* -- the order of a sweep -- */

/* A sample that interrupts the kernel while it writes a COMM may be seen before that. */
enum { INTERRUPT_NS = 1000000 };

typedef struct Renamer {
    bool stop;
    int32_t tid;
} Renamer;

/* Renames itself all the time: a COMM in side-band, then samples that need it. */
static void *rename_on(void *userdata) {
    Renamer *renamer = userdata;

    __atomic_store_n(&renamer->tid, (int32_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
    for (unsigned i = 0; !__atomic_load_n(&renamer->stop, __ATOMIC_RELAXED); i++) {
        char name[16];

        snprintf(name, sizeof(name), "n%u", i);
        prctl(PR_SET_NAME, name);
        for (volatile unsigned k = 0; k < 200000; k++)
            ;
    }
    return NULL;
}

typedef struct OrderCheck {
    Fixture *f;
    uint32_t tid;
    uint64_t newest_sample_ns; /* of the renamer, that left already */
    unsigned comms, samples, late;
} OrderCheck;

static int check_order(void *userdata, const Batch *batch) {
    OrderCheck *check = userdata;
    const PdEvents *events = sampler_events(check->f->session);

    for (size_t at = 0; at < batch->records.size;) {
        PdRecord record = pd_record_at(batch->records.data + at, false);
        PdStamp stamp;

        at += record.size;
        if (pd_events_stamp(events, &record, &stamp) < 0 || stamp.tid != check->tid)
            continue;
        if (record.type == PD_RECORD_SAMPLE) {
            check->samples++;
            check->newest_sample_ns = MAX(check->newest_sample_ns, stamp.time);
        } else if (record.type == PD_RECORD_COMM) {
            check->comms++;
            check->late += stamp.time + INTERRUPT_NS < check->newest_sample_ns;
        }
    }
    return 0;
}

/* Time enough for samples to come whose COMM was not taken. */
static int dally(void *userdata _unused_, uint64_t start_ns _unused_) {
    sleep_ms(4);
    return 0;
}

TEST(side_band_leaves_before_the_samples_that_need_it) {
    SessionConfig config = clock_config("default", 4999);
    Renamer renamer = {};
    OrderCheck check = {};
    uint64_t began_ns = clock_monotonic_ns();
    SamplerSinks sinks = {.on_batch = check_order, .on_side_band_end = dally, .userdata = &check};
    pthread_t thread;
    FIXTURE(f, config);

    check.f = &f;
    CHECK_OK(sampler_enable(f.session));
    CHECK_EQ(pthread_create(&thread, NULL, rename_on, &renamer), 0);
    while (!__atomic_load_n(&renamer.tid, __ATOMIC_SEQ_CST))
        sleep_ms(1);
    check.tid = (uint32_t)renamer.tid;
    while ((check.samples < 500 || check.comms < 300) &&
           clock_monotonic_ns() - began_ns < 20000000000ULL)
        if (sampler_sweep(f.sampler, 512, &sinks) < 0)
            break;
    __atomic_store_n(&renamer.stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    CHECK(check.samples >= 500);
    CHECK(check.comms >= 300);
    CHECK_EQ(check.late, 0U);
}

TEST(small_slices_bring_the_same_bytes) {
    SessionConfig config = clock_config("default", 4999);
    _cleanup_(buffer_done) Buffer expected = {};
    CpuRing *ring;
    FIXTURE(f, config);

    CHECK_OK(sampler_enable(f.session));
    CHECK(wait_for_bytes(f.session, 20000));
    CHECK_OK(sampler_disable(f.session));
    ring = fullest(f.session);
    for (uint64_t at = ring->taken, head = ring_head(&ring->ring); at < head;) {
        RingSlice slice;

        CHECK_OK(ring_slice(&ring->ring, at, head, UINT64_MAX, &f.sampler->scratch, &slice));
        buffer_append(&expected, slice.records.data, slice.records.size);
        at = slice.end;
    }
    CHECK_OK(sweep_all(f.sampler, 1, &f.heard));
    CHECK(!f.heard.out_of_order);
    CHECK_EQ(f.heard.side_band_ends, 1U);
    CHECK(f.heard.largest < 1000);
    CHECK(bytes_equal(buffer_bytes(&f.heard.samples[0][ring->cpu]), buffer_bytes(&expected)));
    CHECK(!sampler_is_sweeping(f.sampler));
}

TEST(samples_during_a_sweep_wait_for_the_next_one) {
    SessionConfig config = clock_config("default", 4999);
    SamplerSinks sinks;
    CpuRing *ring;
    uint64_t noted;
    FIXTURE(f, config);

    sinks = sinks_to(&f.heard);
    CHECK_OK(sampler_enable(f.session));
    CHECK(wait_for_bytes(f.session, 4000));
    CHECK_EQ(sampler_sweep(f.sampler, 1, &sinks), 0);
    CHECK(sampler_is_sweeping(f.sampler));
    ring = fullest(f.session);
    noted = ring->noted;
    CHECK(wait_for_bytes(f.session, 2 * (noted - ring->taken)));
    CHECK_OK(sweep_all(f.sampler, 300, &f.heard));
    CHECK_EQ(ring->taken, noted);
    CHECK(ring_head(&ring->ring) > noted);
}

/* -- giving back -- */

TEST(a_ring_holds_much_long_before_its_fill_starts_a_sweep) {
    SessionConfig config = clock_config("default", 4999);
    CpuRing *ring;
    FIXTURE(f, config);

    CHECK_OK(sampler_enable(f.session));
    CHECK(wait_for_bytes(f.session, 1000));
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    CHECK(!sampler_holds_much(f.session));
    ring = fullest(f.session);
    CHECK(wait_for_bytes(f.session, ring->ring.size / 16 * 5));
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    CHECK(sampler_holds_much(f.session));
    sampler_note_sweep(f.session, 1);
    sampler_written(f.session, 1);
    CHECK(!sampler_holds_much(f.session));
}

TEST(space_is_given_back_when_samples_are_written) {
    SessionConfig config = clock_config("default", 999);
    CpuRing *ring;
    uint64_t first;
    FIXTURE(f, config);

    CHECK_OK(sampler_enable(f.session));
    CHECK(wait_for_bytes(f.session, 1000));
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    ring = fullest(f.session);
    first = ring->taken;
    CHECK(first > 0);
    CHECK_EQ(ring_tail(&ring->ring), 0ULL);
    sampler_note_sweep(f.session, 1);
    CHECK(wait_for_bytes(f.session, 1000));
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    sampler_note_sweep(f.session, 2);
    sampler_written(f.session, 0);
    CHECK_EQ(ring_tail(&ring->ring), 0ULL);
    sampler_written(f.session, 1);
    CHECK_EQ(ring_tail(&ring->ring), first);
    sampler_written(f.session, 2);
    CHECK_EQ(ring_tail(&ring->ring), ring->taken);
}

/* A session that puts batches into memory that outlives it, or not. */
typedef struct Putting {
    int result;
    unsigned n_first, n_others;
} Putting;

static int put_batch(void *userdata, const Batch *batch) {
    Putting *putting = userdata;

    if (!batch->session)
        return 0;
    if (batch->is_first)
        putting->n_first++;
    else
        putting->n_others++;
    return putting->result;
}

static int end_side_band(void *userdata _unused_, uint64_t start_ns _unused_) {
    return 0;
}

static int put_all(Fixture *f, Putting *putting, int result) {
    const SamplerSinks sinks = {
        .on_batch = put_batch, .on_side_band_end = end_side_band, .userdata = putting};
    int r;

    *putting = (Putting){.result = result};
    if (!wait_for_bytes(f->session, 1000))
        return -ETIMEDOUT;
    do
        r = sampler_sweep(f->sampler, 500, &sinks);
    while (r == 0);
    return MIN(r, 0);
}

TEST(room_of_records_that_are_safe_elsewhere_is_given_back_at_once) {
    SessionConfig config = clock_config("default", 999);
    CpuRing *ring;
    uint64_t held;
    Putting putting;
    FIXTURE(f, config);

    CHECK_OK(sampler_enable(f.session));
    CHECK_OK(put_all(&f, &putting, 1));
    CHECK(putting.n_first > 0);
    CHECK_EQ(putting.n_others, 0U);
    ring = fullest(f.session);
    CHECK(ring->taken > 0);
    CHECK_EQ(ring_tail(&ring->ring), ring->taken);
    sampler_note_sweep(f.session, 1);

    /* A slice that stays holds what comes behind it, whatever is said of that. */
    held = ring->taken;
    CHECK_OK(put_all(&f, &putting, 0));
    sampler_note_sweep(f.session, 2);
    CHECK_OK(put_all(&f, &putting, 1));
    CHECK(putting.n_others > 0);
    CHECK(ring->taken > held);
    CHECK_EQ(ring_tail(&ring->ring), held);
    sampler_note_sweep(f.session, 3);
    sampler_written(f.session, 3);
    CHECK_EQ(ring_tail(&ring->ring), ring->taken);
    CHECK_OK(put_all(&f, &putting, 1));
    CHECK_EQ(putting.n_others, 0U);
    CHECK_EQ(ring_tail(&ring->ring), ring->taken);
}

TEST(a_slow_writer_gives_back_nothing_too_early) {
    SessionConfig config = clock_config("default", 499);
    uint64_t at_sweep_five = 0;
    CpuRing *ring;
    FIXTURE(f, config);

    CHECK_OK(sampler_enable(f.session));
    ring = fullest(f.session);
    for (uint64_t sweep = 1; sweep <= 3 * RING_MARKS; sweep++) {
        CHECK(wait_for_bytes(f.session, 100));
        CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
        sampler_note_sweep(f.session, sweep);
        at_sweep_five = sweep == 5 ? ring->taken : at_sweep_five;
    }
    sampler_written(f.session, 5);
    CHECK_EQ(ring_tail(&ring->ring), at_sweep_five);
    sampler_written(f.session, 3 * RING_MARKS - 1);
    CHECK(ring_tail(&ring->ring) < ring->taken);
    sampler_written(f.session, 3 * RING_MARKS);
    CHECK_EQ(ring_tail(&ring->ring), ring->taken);
}

TEST(more_than_half_of_a_ring_is_never_kept) {
    SessionConfig config = clock_config("default", 4999);
    bool was_fast = false;
    CpuRing *ring;
    FIXTURE(f, config);

    config.buffer_bytes = 0;
    sampler_remove(f.session);
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    ring = f.session->rings.rings[0];
    CHECK_EQ(ring->ring.size, limit_ring_bytes_min());
    CHECK_OK(sampler_enable(f.session));
    for (unsigned i = 0; i < 20; i++) {
        CHECK(wait_for_bytes(f.session, 4000));
        CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
        sampler_note_sweep(f.session, i + 1);
        for (size_t k = 0; k < f.session->rings.n; k++) {
            ring = f.session->rings.rings[k];
            CHECK(ring->taken - ring_tail(&ring->ring) <= ring->ring.size / 2);
            CHECK(!ring->fills_fast || ring->taken - ring_tail(&ring->ring) <= ring->ring.size / 8);
            was_fast |= ring->fills_fast;
        }
    }
    CHECK(ring_tail(&fullest(f.session)->ring) > 0);
    CHECK(was_fast);
}

static void rename_often(unsigned n) {
    for (unsigned i = 0; i < n; i++)
        prctl(PR_SET_NAME, i % 2 ? "a" : "b");
}

TEST(newer_half_of_side_band_is_kept) {
    SessionConfig config = clock_config("default", 99);
    uint64_t taken = 0, most = 0;
    FIXTURE(f, config);

    for (unsigned i = 0; i < 20; i++) {
        rename_often(SIDE_BAND_RING_BYTES / 8 / 64);
        CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
        for (size_t k = 0; k < f.sampler->side_band.n; k++) {
            CpuRing *ring = f.sampler->side_band.rings[k];
            uint64_t kept = ring->taken - ring_tail(&ring->ring);

            CHECK(kept <= SIDE_BAND_RING_BYTES / 2);
            CHECK(kept == ring->taken || kept >= SIDE_BAND_RING_BYTES / 4);
            most = MAX(most, ring->taken);
        }
    }
    for (size_t k = 0; k < f.sampler->side_band.n; k++)
        taken += f.sampler->side_band.rings[k]->taken;
    CHECK(most > SIDE_BAND_RING_BYTES / 2);
    CHECK_EQ(taken, f.heard.side_band.size);
}

TEST(a_wrong_header_is_reported_and_not_fatal) {
    SessionConfig config = clock_config("default", 999);
    struct perf_event_mmap_page *control;
    CpuRing *ring;
    FIXTURE(f, config);

    CHECK_OK(sampler_enable(f.session));
    CHECK(wait_for_bytes(f.session, 1000));
    CHECK_OK(sampler_disable(f.session));
    ring = fullest(f.session);
    control = ring->ring.memory;
    control->data_head += 8 * ring->ring.size;
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    CHECK_EQ(f.heard.samples[0][ring->cpu].size, (size_t)0);
    CHECK_OK(sampler_enable(f.session));
    for (unsigned i = 0; i < 500 && f.heard.samples[0][ring->cpu].size == 0; i++) {
        sleep_ms(10);
        CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    }
    CHECK(f.heard.samples[0][ring->cpu].size > 0);
    CHECK(read_samples(buffer_bytes(&f.heard.samples[0][ring->cpu]), sampler_events(f.session),
                       NULL, NULL)
              .sane);
}

/* -- losses -- */

typedef struct Told {
    uint64_t lost, side_band, data;
    unsigned calls;
    SamplerSession *session;
} Told;

static int hear_loss(void *userdata, const Loss *loss) {
    Told *told = userdata;

    told->calls++;
    if (loss->session)
        told->session = loss->session;
    *(loss->session ? &told->lost : loss->is_data ? &told->data : &told->side_band) += loss->lost;
    return 0;
}

TEST(losses_of_a_full_ring_are_counted_once) {
    SessionConfig config = clock_config("default", 4999);
    Told told = {};
    FIXTURE(f, config);

    config.buffer_bytes = 0;
    sampler_remove(f.session);
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_OK(sampler_enable(f.session));
    CHECK(wait_for_bytes(f.session, limit_ring_bytes_min() - 200));
    sleep_ms(50);
    CHECK_OK(sampler_disable(f.session));
    CHECK_OK(sampler_losses(f.sampler, hear_loss, &told));
    CHECK(told.session == f.session);
    CHECK(told.lost >= 10);
    CHECK_EQ(sampler_counts(f.session).lost, told.lost);
    CHECK(sampler_degraded(f.session) & DEGRADED_LOST);
    told = (Told){};
    CHECK_OK(sampler_losses(f.sampler, hear_loss, &told));
    CHECK_EQ(told.lost, 0ULL);
}

TEST(side_band_loss_is_reported_without_a_session) {
    SessionConfig config = clock_config("default", 99);
    Told told = {};
    FIXTURE(f, config);

    for (unsigned i = 0; i < 4 * SIDE_BAND_RING_BYTES / 64; i++)
        prctl(PR_SET_NAME, i % 2 ? "a" : "b");
    CHECK_OK(sampler_losses(f.sampler, hear_loss, &told));
    CHECK(told.side_band > 0);
    CHECK_EQ(told.lost, 0ULL);
    CHECK_EQ(sampler_counts(f.session).side_band_lost, told.side_band);
}

TEST(a_ring_that_was_full_between_two_looks_reports_its_loss) {
    SessionConfig config = clock_config("default", 99);
    Told told = {};
    FIXTURE(f, config);

    CHECK_OK(sampler_losses(f.sampler, hear_loss, &told));
    CHECK_EQ(told.side_band, 0ULL);
    for (unsigned i = 0; i < 4 * SIDE_BAND_RING_BYTES / 64; i++)
        prctl(PR_SET_NAME, i % 2 ? "a" : "b");
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    CHECK_OK(sampler_losses(f.sampler, hear_loss, &told));
    CHECK(told.side_band > 0);
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    told = (Told){};
    CHECK_OK(sampler_losses(f.sampler, hear_loss, &told));
    CHECK_EQ(told.side_band, 0ULL);
}

/* -- data mappings -- */

static SessionConfig stacks_config(void) {
    SessionConfig config = clock_config("stacks", 99);

    config.call_graph = CALL_GRAPH_DWARF;
    config.stack_bytes = 1024;
    return config;
}

static void protect_often(unsigned n) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    for (unsigned i = 0; i < n; i++)
        CHECK_OK(mprotect(memory, page, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE));
    CHECK_OK(munmap(memory, page));
}

/* Of this process. */
static size_t count_records(Bytes records, uint32_t type, uint16_t misc) {
    size_t n = 0;

    for (size_t at = 0; at < records.size;) {
        PdRecord record = pd_record_at(records.data + at, false);

        n += record.type == type && (record.misc & PD_MISC_MMAP_DATA) == misc &&
             load_u32(record.data + PD_RECORD_HEADER_SIZE, false) == (uint32_t)getpid();
        at += record.size;
    }
    return n;
}

TEST(a_flood_of_data_mappings_loses_no_name_and_no_mapping_of_code) {
    enum { ROUNDS = 50, FLOOD = 4 * SIDE_BAND_RING_BYTES / 64 / ROUNDS };
    SessionConfig config = stacks_config();
    Told told = {};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    FIXTURE(f, config);

    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    buffer_clear(&f.heard.side_band);
    for (unsigned i = 0; i < ROUNDS; i++) {
        void *code = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        protect_often(FLOOD);
        rename_often(2);
        CHECK_OK(munmap(code, page));
    }
    CHECK_OK(sampler_losses(f.sampler, hear_loss, &told));
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    CHECK(told.data > 0);
    CHECK_EQ(told.side_band, 0ULL);
    CHECK_EQ(sampler_counts(f.session).data_lost, told.data);
    CHECK_EQ(sampler_counts(f.session).side_band_lost, 0ULL);
    CHECK_EQ(count_records(buffer_bytes(&f.heard.side_band), PD_RECORD_COMM, 0),
             (size_t)(2 * ROUNDS));
    /* Once, though the event of data mappings records them as well. */
    CHECK_EQ(count_records(buffer_bytes(&f.heard.side_band), PD_RECORD_MMAP2, 0), (size_t)ROUNDS);
    CHECK(count_records(buffer_bytes(&f.heard.side_band), PD_RECORD_MMAP2, PD_MISC_MMAP_DATA) > 0);
}

TEST(data_mappings_are_recorded_while_a_session_samples_stacks) {
    SessionConfig config = clock_config("default", 99), stacks = stacks_config();
    SamplerSession *session;
    uint32_t before;
    FIXTURE(f, config);

    before = made_count(f.keeper);
    CHECK(!sampler_records_data(f.sampler));
    CHECK_OK(sampler_add(f.sampler, &stacks, &session));
    CHECK(sampler_records_data(f.sampler));
    CHECK_EQ(made_count(f.keeper), before + 2 * (uint32_t)f.sampler->online.n);
    protect_often(10);
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    CHECK(count_records(buffer_bytes(&f.heard.side_band), PD_RECORD_MMAP2, PD_MISC_MMAP_DATA) >=
          10);
    sampler_remove(session);
    CHECK(!sampler_records_data(f.sampler));
    CHECK_EQ(made_count(f.keeper), before);
    buffer_clear(&f.heard.side_band);
    protect_often(10);
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    CHECK_EQ(count_records(buffer_bytes(&f.heard.side_band), PD_RECORD_MMAP2, PD_MISC_MMAP_DATA),
             (size_t)0);
}

TEST_MAIN()
