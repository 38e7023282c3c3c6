/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recorder/daemon-private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "recorder/debug.h"
#include "session/account.h"
#include "session/degraded.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

/*
 * A sweep moves what the rings hold: side-band to the tracker, samples to their sessions. It works
 * in bounded slices so that the loop runs in between. A sweep starts when a ring is three eighths
 * full and at each flush interval, but never within 10 ms of the one before. After a sweep, losses
 * and finished segments are published to the clients of Monitor().
 */

enum { SLICE_BYTES = 4 << 20 };

#define SWEEP_GAP_NS (10 * NS_PER_MS)
#define PASS_SWEEP_NS                                                                              \
    (50 * NS_PER_MS) /* while /proc is read for the first time: baselines                          \
                      * take effect only after sweeps */
#define EARLY_SWEEP_NS                                                                             \
    (200 * NS_PER_MS) /* at the start of a session that unwinds: its first samples                 \
                       * name the files whose tables are needed */
#define EARLY_NS            (3 * NS_PER_SECOND)
#define LOSSES_PERIOD_NS    (1000 * NS_PER_MS)
#define DATA_LOSS_PERIOD_NS (60000 * NS_PER_MS)
#define STATUS_PERIOD_NS    (10000 * NS_PER_MS)
#define REACH_LEAST_NS      (86400000 * NS_PER_MS)

static int daemon_sweep_on_side_band_end(void *userdata, uint64_t start_ns) {
    Daemon *daemon = userdata;

    SessionEntry *entry;
    int r;

    daemon->sweep.side_band_ns = start_ns;
    r = tracker_settle(daemon->tracker, start_ns);
    for (size_t at = 0; r == 0 && (entry = session_table_next(daemon->sessions, &at));)
        r = session_take_left(entry->session);
    return r;
}

static int daemon_sweep_on_batch(void *userdata, const Batch *batch) {
    Daemon *daemon = userdata;

    if (batch->session)
        return session_take(sampler_userdata(batch->session), batch);
    return tracker_feed(daemon->tracker, sampler_side_band_event(daemon->sampler), batch->records);
}

static SamplerSinks daemon_sweep_sinks_of(Daemon *daemon) {
    return (SamplerSinks){.on_batch = daemon_sweep_on_batch,
                          .on_side_band_end = daemon_sweep_on_side_band_end,
                          .userdata = daemon};
}

/* A program that maps memory in a loop loses some each second, and few of them are of a file. */
static int daemon_sweep_on_data_loss(Daemon *daemon, const Loss *loss) {
    uint64_t now_ns = clock_monotonic_ns();

    if (daemon->sweep.data_loss_ns > 0 && now_ns - daemon->sweep.data_loss_ns < DATA_LOSS_PERIOD_NS)
        return 0;
    daemon->sweep.data_loss_ns = now_ns;
    log_warning(0,
                "The ring of CPU %u was full and lost %" PRIu64
                " mappings of data, with which stacks are unwound, reading /proc again; a "
                "program maps or protects memory all the time",
                loss->cpu, loss->lost);
    return tracker_resync(daemon->tracker);
}

static int daemon_sweep_on_loss(void *userdata, const Loss *loss) {
    static LogRate rate = {.interval_ns = 60 * NS_PER_SECOND, .burst = 5};
    Daemon *daemon = userdata;

    if (loss->session)
        return session_lost(sampler_userdata(loss->session), loss->id, loss->cpu, loss->lost,
                            clock_monotonic_ns());
    if (loss->is_data)
        return daemon_sweep_on_data_loss(daemon, loss);
    log_limited(&rate, LOG_LEVEL_WARNING, 0,
                "The ring of CPU %u was full and lost %" PRIu64
                " records about processes, reading /proc again",
                loss->cpu, loss->lost);
    return tracker_resync_after_loss(daemon->tracker);
}

static void daemon_sweep_publish_losses(Daemon *daemon) {
    SessionEntry *entry;

    for (size_t at = 0; (entry = session_table_next(daemon->sessions, &at));) {
        uint64_t lost = session_totals(entry->session).lost, since = lost - entry->lost_published;
        char text[96];

        if (since == 0)
            continue;
        entry->lost_published = lost;
        snprintf(text, sizeof(text), "%" PRIu64 " samples were lost, %" PRIu64 " so far", since,
                 lost);
        monitor_publish(daemon->monitor, &(MonitorEvent){.event = "lost",
                                                         .session = entry->config.name,
                                                         .text = text,
                                                         .count = since,
                                                         .has_count = true});
    }
}

static int daemon_sweep_check_losses(Daemon *daemon) {
    uint64_t now = clock_monotonic_ns();
    int r;

    if (now - daemon->sweep.losses_ns < LOSSES_PERIOD_NS)
        return 0;
    daemon->sweep.losses_ns = now;
    r = sampler_losses(daemon->sampler, daemon_sweep_on_loss, daemon);
    daemon_sweep_publish_losses(daemon);
    return r;
}

static int daemon_sweep_rotate_where_due(Daemon *daemon, const ClockAnchor *clock) {
    SessionEntry *entry;
    int r = 0;

    for (size_t at = 0; r == 0 && (entry = session_table_next(daemon->sessions, &at));) {
        RotateReason reason = session_is_due(entry->session, clock);

        if (reason != ROTATE_NOT && session_may_rotate(entry->session, reason, clock))
            r = daemon_rotate(daemon, entry, reason, clock);
    }
    return r;
}

static void daemon_sweep_publish_degraded(Daemon *daemon, const char *session, const char *event,
                                          unsigned set) {
    size_t n;
    const DegradedReason *reasons = degraded_reasons(&n);

    for (size_t i = 0; i < n; i++) {
        _cleanup_(buffer_done) Buffer text = {};

        if (!(set & reasons[i].reason))
            continue;
        text_printf(&text, "%s: %s; ", reasons[i].name, reasons[i].meaning);
        degraded_put_remedy(&text, &reasons[i], session);
        text_putc(&text, '\0');
        if (!buffer_error(&text))
            monitor_publish(daemon->monitor, &(MonitorEvent){.event = event,
                                                             .session = session,
                                                             .text = (const char *)text.data});
    }
}

static void daemon_sweep_note_cpu(Daemon *daemon, uint64_t now_ns) {
    if (now_ns - daemon->cpu.at_ns < STATUS_PERIOD_NS)
        return;
    daemon->cpu_before = daemon->cpu;
    daemon->cpu = (CpuPoint){.at_ns = now_ns,
                             .cpu_ns = account_cpu_ns(daemon->tracker),
                             .scan_ns = account_scan_ns(daemon->tracker)};
}

/* How far back the store must reach for this session: a day, or less if the session stops
 * earlier. */
static uint64_t daemon_sweep_least_reach_ns(const SessionEntry *entry) {
    uint64_t boot_ns = clock_ns(CLOCK_BOOTTIME), real_ns = clock_ns(CLOCK_REALTIME), whole_ns;

    if (entry->stop_at_ns == 0)
        return REACH_LEAST_NS;
    whole_ns = real_ns - MIN(entry->since_real_ns, real_ns);
    whole_ns += entry->stop_at_ns - MIN(boot_ns, entry->stop_at_ns);
    return MIN(whole_ns, REACH_LEAST_NS);
}

static bool daemon_sweep_is_short(const Daemon *daemon, const SessionEntry *entry) {
    return store_session_is_short(daemon->store, entry->config.name,
                                  daemon_sweep_least_reach_ns(entry));
}

unsigned daemon_degraded(const Daemon *daemon) {
    ScannerHealth health = tracker_health(daemon->tracker);

    return (daemon->config->problems > 0 ? DEGRADED_CONFIG : 0) |
           (daemon->memory.is_small ? DEGRADED_SMALL_MEMORY : 0) |
           (health.is_stuck ? DEGRADED_SCAN_STUCK : 0) |
           (health.lacks_elf ? DEGRADED_NO_BUILD_IDS : 0);
}

void daemon_update_status(Daemon *daemon, uint64_t now_ns) {
    unsigned all = daemon_degraded(daemon);
    SessionEntry *entry;

    daemon->sweep.status_ns = now_ns;
    sampler_set_lacks_tables(daemon->sampler, all & DEGRADED_NO_BUILD_IDS);
    daemon_sweep_note_cpu(daemon, now_ns);
    for (size_t at = 0; (entry = session_table_next(daemon->sessions, &at));) {
        const char *name = entry->config.name;
        unsigned others = all | (daemon_sweep_is_short(daemon, entry) ? DEGRADED_SHORT_REACH : 0),
                 before = session_degraded(entry->session),
                 set = session_update_degraded(entry->session, others, now_ns);

        session_entry_note_waiting(entry);
        daemon_sweep_publish_degraded(daemon, name, "degraded", set & ~before);
        daemon_sweep_publish_degraded(daemon, name, "recovered", before & ~set);
    }
    session_table_note_rates(daemon->sessions, now_ns);
    notify_status(daemon->sessions, now_ns, daemon->is_outdated);
}

static int daemon_sweep_end_sessions(Daemon *daemon, const ClockAnchor *clock) {
    bool listens = daemon->followers && follower_list_wants(daemon->followers, clock->monotonic_ns);
    SessionEntry *entry;
    int r = listens ? daemon_follow_sweep(daemon) : 0;

    for (size_t at = 0; r == 0 && (entry = session_table_next(daemon->sessions, &at));)
        r = session_end_sweep(entry->session, daemon->sweep.side_band_ns, clock, listens);
    return r;
}

/* In a suspend CPUs were switched off, and the time at which a session ends has come nearer. */
static int daemon_sweep_check_clock(Daemon *daemon, const ClockAnchor *clock) {
    bool moved = clock_anchor_moved(&daemon->sweep.clock, clock, CLOCK_STEP_NS);
    int r = moved ? sampler_check_cpus(daemon->sampler) : 0;

    daemon->sweep.clock = *clock;
    return moved && r == 0 ? session_table_arm(daemon->sessions) : r;
}

static int daemon_sweep_complete(Daemon *daemon) {
    ClockAnchor clock = clock_anchor_now();
    int r = daemon_sweep_check_losses(daemon);

    if (r == 0)
        r = daemon_sweep_check_clock(daemon, &clock);
    if (r == 0 && daemon->sweep.completed_ns != daemon->sweep.side_band_ns)
        r = tracker_complete(daemon->tracker, daemon->sweep.side_band_ns);
    daemon->sweep.completed_ns = daemon->sweep.side_band_ns;
    if (r == 0 && sampler_records_namespaces(daemon->sampler))
        r = tracker_see_namespaces(daemon->tracker);
    if (r == 0)
        r = tracker_see_data(daemon->tracker, sampler_records_data(daemon->sampler));
    if (r == 0)
        r = daemon_sweep_end_sessions(daemon, &clock);
    if (r == 0 && daemon->process_search)
        r = process_search_complete(daemon->process_search, daemon->sweep.side_band_ns);
    waits_check(daemon->waits);
    daemon->sweep.end_ns = clock.monotonic_ns;
    if (clock.monotonic_ns - daemon->sweep.status_ns >= STATUS_PERIOD_NS) {
        daemon_update_status(daemon, clock.monotonic_ns);
    }
    return r == 0 ? daemon_sweep_rotate_where_due(daemon, &clock) : r;
}

/* Until the next sweep, recordings wait for nothing but what that sweep corrects. */
int daemon_on_answered(void *userdata) {
    Daemon *daemon = userdata;
    ClockAnchor clock = clock_anchor_now();
    bool is_waited = false;
    SessionEntry *entry;
    int r;

    if (daemon->stopping || sampler_is_sweeping(daemon->sampler))
        return 0;
    r = daemon_sweep_rotate_where_due(daemon, &clock);
    waits_check(daemon->waits);
    for (size_t at = 0; (entry = session_table_next(daemon->sessions, &at));)
        is_waited |=
            session_waits(entry->session) && (entry->state == SESSION_STOPPING ||
                                              session_is_due(entry->session, &clock) != ROTATE_NOT);
    return r == 0 && is_waited ? daemon_sweep_soon(daemon) : r;
}

/* Publishes a segment only when it is finished and can be read. */
static void daemon_sweep_publish_rotations(Daemon *daemon) {
    SessionEntry *entry;

    for (size_t at = 0; (entry = session_table_next(daemon->sessions, &at));) {
        SessionRotations rotations = session_rotations(entry->session);

        if (rotations.finished <= entry->rotations_published ||
            rotations.finished < rotations.asked)
            continue;
        entry->rotations_published = rotations.finished;
        if (entry->ended_path[0])
            monitor_publish(daemon->monitor, &(MonitorEvent){.event = "rotated",
                                                             .session = entry->config.name,
                                                             .text = "a segment is finished",
                                                             .path = entry->ended_path});
    }
}

/* Sessions whose folders exist by now begin to record, and finished ones are removed. */
static int daemon_sweep_advance_sessions(Daemon *daemon) {
    int r = daemon_end_sweep(daemon);

    if (r < 0)
        return r;
    session_table_advance(daemon->sessions);
    r = daemon_begin_segments(daemon);
    return r < 0 ? r : daemon_sweep_soon(daemon);
}

static void daemon_sweep_give_back(Daemon *daemon) {
    SessionEntry *entry;

    for (size_t at = 0; (entry = session_table_next(daemon->sessions, &at));)
        session_give_back(entry->session);
}

int daemon_check_writers(Daemon *daemon) {
    int r = 0;

    daemon_sweep_give_back(daemon);
    daemon_sweep_publish_rotations(daemon);
    r = session_table_stop_ended(daemon->sessions);
    if (r == 0 && session_table_is_changing(daemon->sessions))
        r = daemon_sweep_advance_sessions(daemon);
    if (daemon->followers && follower_list_wake(daemon->followers) && r == 0)
        r = daemon_sweep_soon(daemon);
    waits_check(daemon->waits);
    session_table_forget_ended(daemon->sessions);
    return r;
}

int daemon_rotate(Daemon *daemon, SessionEntry *entry, RotateReason reason,
                  const ClockAnchor *clock) {
    const char *path = session_has_segment(entry->session) ? session_path(entry->session) : "";
    int r;

    snprintf(entry->ended_path, sizeof(entry->ended_path), "%s", path);
    r = session_rotate(entry->session, reason, clock);
    if (entry->state == SESSION_STARTING && session_has_segment(entry->session)) {
        entry->state = SESSION_ACTIVE;
        daemon_sweep_early(daemon);
    }
    return r;
}

/* A segment begins with the kernel's maps, so it cannot begin before they are known. */
int daemon_begin_segments(Daemon *daemon) {
    ClockAnchor clock = clock_anchor_now();
    SessionEntry *entry;
    int r = 0;

    if (!tracker_knows_kernel(daemon->tracker))
        return 0;
    for (size_t at = 0; r == 0 && (entry = session_table_next(daemon->sessions, &at));)
        if (!session_has_segment(entry->session))
            r = daemon_rotate(daemon, entry, ROTATE_ASKED, &clock);
    return r;
}

/* Returns 1 when the sweep is complete. */
static int daemon_sweep_slice(Daemon *daemon) {
    SamplerSinks sinks = daemon_sweep_sinks_of(daemon);
    int r = 0;

    if (debug_sweep_hangs())
        return 0;
    if (!sampler_is_sweeping(daemon->sampler)) {
        daemon->sweep.begin_ns = clock_monotonic_ns();
        daemon_sweep_give_back(daemon);
        r = daemon_begin_segments(daemon);
    }
    if (r == 0)
        r = sampler_sweep(daemon->sampler, SLICE_BYTES, &sinks);
    if (r <= 0)
        return r;
    r = daemon_sweep_complete(daemon);
    return r < 0 ? r : 1;
}

/* Triggers the sweep that writes mappings without their build id after a wait that is too long. */
static int daemon_sweep_when_late(Daemon *daemon) {
    uint64_t until_ns = history_waits_until(tracker_history(daemon->tracker)),
             now_ns = clock_monotonic_ns();

    if (until_ns == 0)
        return 0;
    return loop_trigger_after(daemon->late_source, until_ns - MIN(until_ns, now_ns));
}

void daemon_sweep_early(Daemon *daemon) {
    daemon->sweep.early_until_ns = clock_monotonic_ns() + EARLY_NS;
}

static bool daemon_sweep_is_early(const Daemon *daemon) {
    SessionEntry *entry;
    bool unwinds = false;

    if (clock_monotonic_ns() >= daemon->sweep.early_until_ns)
        return false;
    for (size_t at = 0; !unwinds && (entry = session_table_next(daemon->sessions, &at));)
        unwinds = sampler_is_unwound(session_sampler(entry->session));
    return unwinds;
}

int daemon_sweep(void *userdata) {
    Daemon *daemon = userdata;
    int r;

    if (!tracker_knows_kernel(daemon->tracker))
        return 0;
    r = daemon_sweep_slice(daemon);
    if (r == 0)
        return loop_trigger(daemon->sweep_source);
    if (r > 0 && !tracker_is_ready(daemon->tracker))
        r = loop_trigger_after(daemon->sweep_source, PASS_SWEEP_NS);
    else if (r > 0 && daemon_sweep_is_early(daemon))
        r = loop_trigger_after(daemon->sweep_source, EARLY_SWEEP_NS);
    else if (r > 0)
        r = daemon_sweep_when_late(daemon);
    return MIN(r, 0);
}

int daemon_sweep_soon(void *userdata) {
    Daemon *daemon = userdata;
    uint64_t passed = clock_monotonic_ns() - daemon->sweep.begin_ns;

    if (sampler_is_sweeping(daemon->sampler))
        return 0;
    return loop_trigger_after(daemon->sweep_source,
                              passed < SWEEP_GAP_NS ? SWEEP_GAP_NS - passed : 0);
}

int daemon_follow_sweep(void *userdata) {
    Daemon *daemon = userdata;
    uint64_t now_ns = clock_monotonic_ns(), next_ns = follower_list_next_ns(daemon->followers);

    if (next_ns == UINT64_MAX)
        return 0;
    return next_ns > now_ns ? loop_trigger_after(daemon->follow_source, next_ns - now_ns)
                            : daemon_sweep_soon(daemon);
}

/* Completes the sweep at once, for callers that cannot wait for the loop. */
static int daemon_sweep_all(Daemon *daemon) {
    int r;

    do
        r = daemon_sweep_slice(daemon);
    while (r == 0);
    return MIN(r, 0);
}

int daemon_end_sweep(Daemon *daemon) {
    return sampler_is_sweeping(daemon->sampler) ? daemon_sweep_all(daemon) : 0;
}

int daemon_add_flush_timer(Daemon *daemon) {
    daemon->flush_timer = loop_source_free(daemon->flush_timer);
    return loop_add_timer(daemon->loop, daemon->config->flush_interval_ns, daemon_sweep_soon,
                          daemon, &daemon->flush_timer);
}

int daemon_drain(void *userdata) {
    Daemon *daemon = userdata;
    int r;

    if (!tracker_knows_kernel(daemon->tracker))
        return 0;
    r = daemon_end_sweep(daemon);
    daemon->sweep.losses_ns = 0;
    return r == 0 ? daemon_sweep_all(daemon) : r;
}

/* At once, since a process may be gone soon. */
static int daemon_sweep_on_side_band_open(void *userdata) {
    Daemon *daemon = userdata;

    daemon->sweep.has_resynced = true;
    return tracker_resync(daemon->tracker);
}

int daemon_on_cpus(void *userdata) {
    Daemon *daemon = userdata;
    SamplerSinks sinks = daemon_sweep_sinks_of(daemon);
    bool only_sessions;
    int r;

    if (!tracker_knows_kernel(daemon->tracker))
        return loop_trigger_after(daemon->sweep_source, PASS_SWEEP_NS);
    daemon->sweep.has_resynced = false;
    sinks.on_side_band_open = daemon_sweep_on_side_band_open;
    r = daemon_end_sweep(daemon);
    if (r == 0)
        r = sampler_refresh_cpus(daemon->sampler, &sinks);
    if (r <= 0)
        return r;
    only_sessions = r == 2;
    monitor_publish(daemon->monitor,
                    &(MonitorEvent){.event = "cpus",
                                    .text = only_sessions ? "sessions record on other CPUs or in "
                                                            "another control group"
                                                          : "CPUs came or went"});
    /* New events need segments whose event table includes them. */
    r = daemon_sweep_complete(daemon);
    daemon_update_status(daemon, clock_monotonic_ns());
    return r == 0 && !only_sessions && !daemon->sweep.has_resynced ? tracker_resync(daemon->tracker)
                                                                   : r;
}
