/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "capture/baseline.h"
#include "capture/capture.h"
#include "loop/loop.h"
#include "perfdata/host.h"
#include "store/store.h"
#include "util/file.h"
#include "util/log.h"

/*
 * Joins capture to the store. The order at start is what makes samples resolve: side-band runs
 * before the baseline is read, the baseline is in the file before the first sample is taken. From
 * then on a sweep moves what the rings hold into the segment, woken by a ring that fills or, at
 * the least, by a slow timer.
 */

enum {
    SWEEP_PERIOD_MS = 250,
    ROUND_PERIOD_MS = 1000,
};

#define NS_PER_MS  1000000ULL
#define NS_PER_SEC 1000000000ULL

struct Daemon {
    Config config;
    Loop *loop;
    PdEnvironment *environment;
    Store *store;
    Capture *capture;
    Segment *segment;
    uint64_t round_ns, flush_ns; /* when the last was written */
    uint64_t sample_bytes;
};

static uint64_t clock_ns(clockid_t clock) {
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

static int on_batch(void *userdata, const Batch *batch) {
    Daemon *daemon = userdata;

    if (!batch->side_band)
        daemon->sample_bytes += batch->records.size;
    return segment_write(daemon->segment, batch->records);
}

static int write_mark(Daemon *daemon, PdRecordType type) {
    _cleanup_(buffer_done) Buffer mark = {};

    pd_emit_mark(&mark, type);
    if (buffer_error(&mark) < 0)
        return buffer_error(&mark);
    return segment_write(daemon->segment, buffer_bytes(&mark));
}

static int sweep(void *userdata) {
    Daemon *daemon = userdata;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    int r = capture_sweep(daemon->capture, on_batch, daemon);

    if (r == 0 && now - daemon->round_ns >= ROUND_PERIOD_MS * NS_PER_MS) {
        daemon->round_ns = now;
        r = write_mark(daemon, PD_RECORD_FINISHED_ROUND);
    }
    if (r == 0 && now - daemon->flush_ns >= daemon->config.flush_interval_ns) {
        daemon->flush_ns = now;
        r = segment_flush(daemon->segment);
    }
    return r;
}

static int on_stop(void *userdata) {
    loop_stop(((Daemon *)userdata)->loop);
    return 0;
}

static PdTrailer side_band_trailer(const Daemon *daemon, uint64_t time_ns) {
    const PdEvent *event = pd_events_at(capture_events(daemon->capture), 1);

    return (PdTrailer){
        .sample_type = event->attr.sample_type, .id = event->ids[0], .time = time_ns};
}

/* Side-band is running since capture_new(), so what the scan misses comes by itself. */
static int write_baseline(Daemon *daemon, uint64_t start_ns) {
    PdTrailer trailer = side_band_trailer(daemon, start_ns);
    int r = baseline_kernel("", &trailer, on_batch, daemon);

    if (r == 0)
        r = baseline_processes("", &trailer, on_batch, daemon);
    return r == 0 ? write_mark(daemon, PD_RECORD_FINISHED_INIT) : r;
}

static int clip_frequency(uint64_t *frequency_hz) {
    static const char path[] = "/proc/sys/kernel/perf_event_max_sample_rate";
    char text[32];
    uint64_t max;
    int r = file_read_text(path, text, sizeof(text));

    if (r < 0 || sscanf(text, "%" SCNu64, &max) != 1)
        return log_error(r < 0 ? r : -EBADMSG,
                         "Failed to read '%s', has this kernel perf events at all?", path);
    if (*frequency_hz > max) {
        log_warning(0,
                    "Lowering the frequency from %" PRIu64 " to %" PRIu64 " Hz, the limit in '%s'",
                    *frequency_hz, max, path);
        *frequency_hz = max;
    }
    return 0;
}

/* What the host itself does not tell: who records, the clock of the samples, and what time of day
 * it was by that clock. */
static int note_recorder(PdEnvironment *environment) {
    environment->version = strdup("profd " PROFD_VERSION);
    if (!environment->version)
        return -ENOMEM;
    environment->has[PD_FEATURE_VERSION] = true;
    environment->has[PD_FEATURE_CLOCKID] = true;
    environment->clockid_resolution_ns = 1;
    environment->has[PD_FEATURE_CLOCK_DATA] = true;
    environment->clock_data_version = 1;
    environment->clock_data_clockid = CLOCK_MONOTONIC;
    environment->clock_data_clockid_ns = clock_ns(CLOCK_MONOTONIC);
    environment->clock_data_wall_ns = clock_ns(CLOCK_REALTIME);
    return 0;
}

static int add_source(void *userdata, int fd) {
    Daemon *daemon = userdata;

    return loop_add_readable(daemon->loop, fd, sweep, daemon);
}

static int add_sources(Daemon *daemon) {
    int r = capture_each_fd(daemon->capture, add_source, daemon);

    if (r == 0)
        r = loop_add_timer(daemon->loop, SWEEP_PERIOD_MS * NS_PER_MS, sweep, daemon);
    if (r == 0)
        r = loop_add_signal(daemon->loop, SIGTERM, on_stop, daemon);
    if (r == 0)
        r = loop_add_signal(daemon->loop, SIGINT, on_stop, daemon);
    return r < 0 ? log_error(r, "Failed to set up the main loop: %m") : 0;
}

static int start(Daemon *daemon) {
    const Config *config = &daemon->config;
    CaptureOptions capture = {.frequency_hz = config->frequency_hz,
                              .ring_bytes = config->buffer_bytes,
                              .call_graph = config->call_graph,
                              .exclude_idle = config->exclude_idle,
                              .exclude_kernel = !config->kernel_samples};
    uint64_t start_ns;
    int r = capture_new(&capture, &daemon->capture);

    if (r < 0)
        return r;
    start_ns = clock_ns(CLOCK_MONOTONIC);
    r = segment_new(daemon->store, capture_events(daemon->capture), config->zstd_level,
                    &daemon->segment);
    if (r == 0)
        r = write_baseline(daemon, start_ns);
    if (r == 0)
        r = capture_start(daemon->capture);
    daemon->round_ns = daemon->flush_ns = start_ns;
    return r;
}

int daemon_new(const DaemonOptions *options, Daemon **ret) {
    _cleanup_(daemon_freep) Daemon *daemon = calloc(1, sizeof(*daemon));
    int r;

    if (!daemon)
        return -ENOMEM;
    daemon->config = *options->config;
    r = clip_frequency(&daemon->config.frequency_hz);
    if (r < 0)
        return r;
    r = pd_environment_new(&daemon->environment);
    if (r == 0)
        r = pd_host_collect(daemon->environment, "", options->argv);
    if (r == 0)
        r = note_recorder(daemon->environment);
    if (r < 0)
        return log_error(r, "Failed to collect what this host is: %m");
    r = store_open(options->store, daemon->environment, &daemon->store);
    if (r == 0)
        r = loop_new(&daemon->loop);
    if (r == 0)
        r = start(daemon);
    if (r == 0)
        r = add_sources(daemon);
    if (r < 0)
        return r;
    log_info("Recording %s at %" PRIu64 " Hz on %zu CPUs into '%s.open'",
             capture_event_name(daemon->capture), daemon->config.frequency_hz,
             capture_n_cpus(daemon->capture), segment_path(daemon->segment));
    *ret = TAKE_PTR(daemon);
    return 0;
}

/* What the kernel dropped is told in the file, CPU by CPU. */
static int write_losses(Daemon *daemon) {
    const PdEvent *samples = pd_events_at(capture_events(daemon->capture), 0);
    _cleanup_(buffer_done) Buffer records = {};
    uint64_t total = 0;

    for (size_t i = 0; i < capture_n_cpus(daemon->capture); i++) {
        PdTrailer trailer = {.sample_type = samples->attr.sample_type,
                             .id = samples->ids[i],
                             .time = clock_ns(CLOCK_MONOTONIC)};
        uint64_t lost;
        int r = capture_lost(daemon->capture, i, &trailer.cpu, &lost);

        if (r < 0)
            return log_error(r, "Failed to read what CPU %zu lost: %m", i);
        if (lost > 0)
            pd_emit_lost_samples(&records, &trailer, lost);
        total += lost;
    }
    if (total > 0)
        log_warning(0, "%" PRIu64 " samples were lost because a ring was full", total);
    if (records.size == 0 || buffer_error(&records) < 0)
        return buffer_error(&records);
    return segment_write(daemon->segment, buffer_bytes(&records));
}

static int stop(Daemon *daemon) {
    int r = capture_stop(daemon->capture);

    if (r == 0)
        r = capture_sweep(daemon->capture, on_batch, daemon);
    if (r == 0)
        r = write_losses(daemon);
    if (r == 0)
        r = segment_finish(daemon->segment, daemon->environment);
    if (r == 0)
        log_info("Finished segment '%s' with %" PRIu64 " bytes of samples",
                 segment_path(daemon->segment), daemon->sample_bytes);
    return r;
}

int daemon_run(Daemon *daemon) {
    int r = loop_run(daemon->loop), k = stop(daemon);

    return r < 0 ? r : k;
}

Daemon *daemon_free(Daemon *daemon) {
    if (!daemon)
        return NULL;
    segment_free(daemon->segment);
    capture_free(daemon->capture);
    store_free(daemon->store);
    loop_free(daemon->loop);
    pd_environment_free(daemon->environment);
    free(daemon);
    return NULL;
}
