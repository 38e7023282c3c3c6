/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Samplers over a keeper made by hand, what they hand to their sinks, and loads to be sampled.
 */

#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>

#include "capture/open/sampler-state.h"
#include "capture/open/side-band.h"
#include "capture/sampler/sampler.h"
#include "perfdata/record/record.h"

#include "make-keeper.h"
#include "util/clock.h"

enum { HEARD_CPUS = 64, HEARD_SESSIONS = 4 };

typedef struct Heard {
    Buffer side_band;
    Buffer samples[HEARD_SESSIONS][HEARD_CPUS]; /* by the session's userdata, a small number */
    unsigned side_band_ends, batches;
    bool in_samples, out_of_order;
    size_t largest;
} Heard;

static inline void heard_done(Heard *heard) {
    buffer_done(&heard->side_band);
    for (size_t s = 0; s < HEARD_SESSIONS; s++)
        for (size_t i = 0; i < HEARD_CPUS; i++)
            buffer_done(&heard->samples[s][i]);
}

static inline int hear_batch(void *userdata, const Batch *batch) {
    Heard *heard = userdata;
    Buffer *to = batch->session
                     ? &heard->samples[(uintptr_t)sampler_userdata(batch->session)][batch->cpu]
                     : &heard->side_band;

    heard->out_of_order |= heard->in_samples != (batch->session != NULL);
    heard->batches++;
    heard->largest = MAX(heard->largest, batch->records.size);
    buffer_append(to, batch->records.data, batch->records.size);
    return buffer_error(to);
}

static inline int hear_side_band_end(void *userdata, uint64_t start_ns) {
    Heard *heard = userdata;

    heard->out_of_order |= heard->in_samples || start_ns == 0 || start_ns > clock_monotonic_ns();
    heard->in_samples = true;
    heard->side_band_ends++;
    return 0;
}

static inline SamplerSinks sinks_to(Heard *heard) {
    return (SamplerSinks){
        .on_batch = hear_batch, .on_side_band_end = hear_side_band_end, .userdata = heard};
}

/* Completes a sweep, slice by slice. */
static inline int sweep_all(Sampler *sampler, uint64_t budget, Heard *heard) {
    SamplerSinks sinks = sinks_to(heard);
    int r;

    do
        r = sampler_sweep(sampler, budget, &sinks);
    while (r == 0);
    heard->in_samples = false;
    return r < 0 ? r : 0;
}

static inline SessionConfig clock_config(const char *name, uint64_t hz) {
    SessionConfig config = {.enabled = true,
                            .frequency_hz = hz,
                            .user_samples = true,
                            .kernel_samples = true,
                            .buffer_bytes = 512 * 1024};

    snprintf(config.name, sizeof(config.name), "%s", name);
    snprintf(config.events, sizeof(config.events), "cpu-clock");
    return config;
}

static inline int make_sampler(Keeper *keeper, Sampler **ret) {
    return sampler_new(&(SamplerOptions){.keeper = keeper, .buffer_total_bytes = 64 << 20}, ret);
}

static inline void sleep_ms(unsigned ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

/* Waits until some CPU of the session has this many bytes to take, or for some seconds. */
static inline bool wait_for_bytes(const SamplerSession *session, uint64_t bytes) {
    for (unsigned i = 0; i < 1000; i++) {
        for (size_t k = 0; k < session->rings.n; k++)
            if (ring_head(&session->rings.rings[k]->ring) - session->rings.rings[k]->taken >= bytes)
                return true;
        sleep_ms(10);
    }
    return false;
}

/* Counts samples, and checks that each is whole, in order of time and of an event of the table. */
typedef struct Samples {
    size_t n;
    uint64_t first_ns, last_ns;
    bool sane;
} Samples;

static inline Samples read_samples(Bytes bytes, const PdEvents *events,
                                   bool (*wanted)(const PdStamp *stamp, void *userdata),
                                   void *userdata) {
    Samples s = {.sane = true};

    for (size_t at = 0; at < bytes.size;) {
        PdRecord record = pd_record_at(bytes.data + at, false);
        PdStamp stamp;

        if (!pd_record_is_sane(&record) || record.size > bytes.size - at ||
            pd_events_stamp(events, &record, &stamp) < 0 || !stamp.event ||
            stamp.time < s.last_ns) {
            s.sane = false;
            return s;
        }
        at += record.size;
        s.last_ns = stamp.time;
        s.first_ns = s.first_ns ?: stamp.time;
        if (record.type != PD_RECORD_SAMPLE)
            continue;
        s.n++;
        s.sane &= !wanted || wanted(&stamp, userdata);
    }
    return s;
}

static inline pid_t spin_in_child(void) {
    pid_t pid = fork();

    if (pid == 0)
        for (volatile unsigned i = 0;; i++)
            ;
    return pid;
}

static inline void end_child(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Skips the test if the kernel refuses to open events. */
#define NEED_EVENTS(keeper)                                                                        \
    do {                                                                                           \
        PdAttr _attr = {.type = PD_TYPE_SOFTWARE, .sample_period = 1000000};                       \
        int _r = plan_try((keeper), &_attr, plan_any, 0);                                          \
        if (_r == -EACCES || _r == -EPERM || _r == -ENOSYS)                                        \
            TEST_SKIP("perf events refused by the kernel: %s", strerror(-_r));                     \
    } while (0)

/* A sampler with one session. */
typedef struct Fixture {
    Keeper *keeper;
    Sampler *sampler;
    SamplerSession *session;
    Heard heard;
} Fixture;

static inline void fixture_done(Fixture *f) {
    sampler_free(f->sampler);
    heard_done(&f->heard);
    if (f->keeper)
        made_done(f->keeper);
    free(f->keeper);
}

#define FIXTURE(f, config)                                                                         \
    _cleanup_(fixture_done) Fixture f = {.keeper = calloc(1, sizeof(Keeper))};                     \
    NEED_EVENTS(f.keeper);                                                                         \
    CHECK_OK(make_sampler(f.keeper, &f.sampler));                                                  \
    CHECK_OK(sampler_add(f.sampler, &(config), &f.session))

/* The ring that holds the most bytes. */
static inline CpuRing *fullest(const SamplerSession *session) {
    CpuRing *best = session->rings.rings[0];

    for (size_t i = 1; i < session->rings.n; i++)
        if (ring_head(&session->rings.rings[i]->ring) > ring_head(&best->ring))
            best = session->rings.rings[i];
    return best;
}

/* An idle CPU need not produce samples; true when this one does within some seconds. */
static inline bool spin_on(unsigned cpu, const SamplerSession *session) {
    const CpuRing *ring = ring_set_find(&session->rings, cpu);
    uint64_t began_ns = clock_monotonic_ns();
    cpu_set_t before, only;

    sched_getaffinity(0, sizeof(before), &before);
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    sched_setaffinity(0, sizeof(only), &only);
    while (ring_head(&ring->ring) == ring->taken &&
           clock_monotonic_ns() - began_ns < 10000000000ULL)
        ;
    sched_setaffinity(0, sizeof(before), &before);
    return ring_head(&ring->ring) != ring->taken;
}
