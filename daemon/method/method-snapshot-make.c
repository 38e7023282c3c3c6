/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "method/snapshot-call.h"

#include <errno.h>
#include <string.h>

#include "method/method-private.h"
#include "protocol/value.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * Snapshot() step by step: wait for the moment that the window refers to, record the part of the
 * window that lies in the future, wait until a sweep that began after the window's end is written,
 * then let the engine build the snapshot. The client may disconnect at any step; then nothing is
 * kept. The window is fixed on the clock of the samples, at the named moment or at the time of the
 * call.
 */

typedef enum Phase { PHASE_WAIT, PHASE_RECORD, PHASE_SWEEP, PHASE_BUILD, PHASE_DONE } Phase;

#define PROGRESS_NS 100000000ULL
#define CHECK_NS                                                                                   \
    NS_PER_SECOND /* check again, because setting the clock shifts moments of                      \
                   * wall time */

typedef struct Job {
    Daemon *daemon;
    Call *call;
    SnapshotCall asked;
    Phase phase;
    LoopSource *timer;
    uint64_t end_ns;     /* CLOCK_MONOTONIC; the end of the window, or the time of the call */
    uint64_t from_ns;    /* the moment that lastUsec counts back from */
    uint64_t swept_ns;   /* when the first sweep began that covers the whole window; 0: not yet */
    uint64_t sweep;      /* the sweep that has to be written; 0: it has not ended */
    uint64_t session_ns; /* start of the session whose sweeps are counted */
    Snapshot *building;
    uint64_t reported_ns, done_bytes, total_bytes;
    bool has_failed;
    SnapshotFailure failure;
    SnapshotInfo info;
} Job;

static void method_snapshot_make_job_free(void *userdata) {
    Job *job = userdata;

    snapshot_cancel(job->building);
    loop_source_free(job->timer);
    snapshot_call_done(&job->asked);
    free(job);
}

static const char *method_snapshot_make_phase_name(Phase phase) {
    static const char *const names[] = {[PHASE_WAIT] = "waiting",
                                        [PHASE_RECORD] = "recording",
                                        [PHASE_SWEEP] = "sweeping",
                                        [PHASE_BUILD] = "building",
                                        [PHASE_DONE] = "done"};

    return names[phase];
}

static json_t *method_snapshot_make_progress(const Job *job, json_t *snapshot) {
    return json_pack("{s:s, s:o, s:o, s:o}", "phase", method_snapshot_make_phase_name(job->phase),
                     "doneBytes", answer_count(job->done_bytes), "totalBytes",
                     answer_count(job->total_bytes), "snapshot", snapshot);
}

static void method_snapshot_make_report_progress(Job *job) {
    json_t *parameters =
        call_wants_more(job->call) ? method_snapshot_make_progress(job, json_null()) : NULL;

    job->reported_ns = clock_monotonic_ns();
    if (parameters)
        (void)call_continue(job->call, parameters);
}

static void method_snapshot_make_enter(Job *job, Phase phase) {
    job->phase = phase;
    method_snapshot_make_report_progress(job);
}

static void method_snapshot_make_on_progress(void *userdata, uint64_t done_bytes,
                                             uint64_t total_bytes) {
    Job *job = userdata;

    job->done_bytes = done_bytes;
    job->total_bytes = total_bytes;
    if (clock_monotonic_ns() - job->reported_ns >= PROGRESS_NS)
        method_snapshot_make_report_progress(job);
}

static void method_snapshot_make_on_done(void *userdata, const SnapshotFailure *failure,
                                         const SnapshotInfo *info) {
    Job *job = userdata;

    job->building = NULL;
    job->phase = PHASE_DONE;
    job->has_failed = failure;
    if (failure)
        job->failure = *failure;
    else
        job->info = *info;
    waits_check(job->daemon->waits);
}

static int method_snapshot_make_fail_match(Call *call, const SnapshotFailure *failure) {
    json_t *near = json_array();

    for (size_t i = 0; i < failure->near.n; i++)
        value_append(&near, answer_text(failure->near.names[i].name));
    return call_fail(
        call, "NoSamplesMatch",
        json_pack("{s:o, s:o}", "selection", answer_echo(failure->text), "near", near));
}

static int method_snapshot_make_fail(const Job *job) {
    const SnapshotFailure *failure = &job->failure;
    const char *name = job->asked.name;
    Call *call = job->call;

    switch (failure->error) {
    case SNAPSHOT_NO_SESSION:
        return method_fail_no_session(job->daemon, call, "NoSuchSession", job->asked.session);
    case SNAPSHOT_UNAVAILABLE:
        return method_fail_no_window(call, failure);
    case SNAPSHOT_EXISTS:
        return call_fail(call, "SnapshotExists",
                         json_pack("{s:o}", "name", answer_text(name ? name : "")));
    case SNAPSHOT_BUDGET:
        return call_fail(call, "DiskBudget",
                         json_pack("{s:o, s:o}", "limit", answer_count(failure->limit_bytes),
                                   "need", answer_count(failure->need_bytes)));
    case SNAPSHOT_DISK_FULL:
        return call_fail(call, "DiskFull",
                         json_pack("{s:o}", "path", answer_text(job->daemon->store_path)));
    case SNAPSHOT_CANCELLED:
        return call_fail(call, "Cancelled", NULL);
    case SNAPSHOT_FORBIDDEN:
        return call_fail_permission(call);
    case SNAPSHOT_NO_MATCH:
        return method_snapshot_make_fail_match(call, failure);
    case SNAPSHOT_FAILED:
        break;
    }
    return call_fail_reason(call, failure->code, failure->text);
}

static void method_snapshot_make_log_taken(const Job *job) {
    const SnapshotInfo *info = &job->info;

    log_struct(LOG_LEVEL_INFO, 0,
               LOG_FIELDS({"PROFD_EVENT", "snapshot-taken"}, {"PROFD_SESSION", info->session},
                          {"PROFD_SNAPSHOT", info->name}, {"PROFD_PATH", info->path}),
               "Took snapshot '%s' of session '%s'", info->name, info->session);
    monitor_publish(job->daemon->monitor, &(MonitorEvent){.event = "snapshot",
                                                          .session = info->session,
                                                          .text = info->name,
                                                          .path = info->path});
}

static void method_snapshot_make_succeed(Job *job) {
    Daemon *daemon = job->daemon;

    if (job->info.transient)
        (void)method_hold_snapshot(daemon, job->call, job->info.name);
    else
        method_snapshot_make_log_taken(job);
    (void)call_reply(job->call, method_snapshot_make_progress(job, snapshot_json(&job->info)));
}

/* Errors before the engine has begun are answered here. True: the call was ended. */
static bool method_snapshot_make_fail_begin(Job *job, int error) {
    if (error == -EBUSY)
        (void)call_fail_busy(job->call);
    else if (error == -EEXIST)
        (void)call_fail(
            job->call, "SnapshotExists",
            json_pack("{s:o}", "name", answer_text(job->asked.name ? job->asked.name : "")));
    else if (error == -EINVAL)
        (void)call_fail_parameter(job->call, job->asked.has_until ? "untilUsec" : "sinceUsec",
                                  job->asked.has_until ? "it is not after the start of the window"
                                                       : "it is not before the end of the window");
    else
        (void)call_fail_reason(job->call, error, NULL);
    return true;
}

/* Starts the engine. True: it could not start, and the call was ended. */
static bool method_snapshot_make_build(Job *job) {
    const SnapshotCall *asked = &job->asked;
    const Peer *peer = call_peer(job->call);
    SnapshotRequest request = {.session = asked->session,
                               .since_ns = asked->since_ns,
                               .until_ns = asked->until_ns,
                               .name = asked->name,
                               .reason = asked->reason[0] ? asked->reason : NULL,
                               .pin = asked->pin,
                               .transient = asked->transient,
                               .layout = asked->layout,
                               .zstd_level = asked->zstd_level,
                               .keep_frames = asked->keep_frames,
                               .filter = asked->filter,
                               .uid = peer->uid,
                               .privileged = peer->right >= RIGHT_ADMIN};
    const SnapshotCallbacks callbacks = {method_snapshot_make_on_progress,
                                         method_snapshot_make_on_done, job};
    int r;

    if (asked->has_last) {
        request.by_monotonic = true;
        request.since_ns = job->from_ns;
        request.until_ns = job->end_ns;
        request.asked_ns = asked->last_ns + asked->follow_up_ns;
    }
    method_snapshot_make_enter(job, PHASE_BUILD);
    r = snapshot_begin(job->daemon->snapshots, &request, &callbacks, &job->building);
    return r < 0 ? method_snapshot_make_fail_begin(job, r) : false;
}

/* A program that started a moment ago belongs to the window, and its build id may still be
 * pending. */
static bool method_snapshot_make_waits_for_build_ids(const Job *job) {
    return history_waits_since(tracker_history(job->daemon->tracker)) <= job->swept_ns;
}

/* 1: a sweep that began after the end is written, or nothing more will come; 0: not yet; a negative
 * errno: the store cannot be written. */
static int method_snapshot_make_is_written(Job *job) {
    const SessionEntry *entry = session_table_find(job->daemon->sessions, job->asked.session);
    SessionTotals totals;

    if (!entry || !session_entry_records(entry) || !session_has_segment(entry->session))
        return !entry || !entry->session;
    /* The sweeps of a restarted session count from the beginning. */
    if (job->session_ns != entry->since_real_ns)
        job->sweep = 0;
    job->session_ns = entry->since_real_ns;
    session_listen(entry->session);
    totals = session_totals(entry->session);
    if (job->swept_ns == 0 && job->daemon->sweep.completed_ns >= job->end_ns)
        job->swept_ns = job->daemon->sweep.completed_ns;
    if (job->swept_ns == 0)
        return daemon_sweep_soon(job->daemon);
    if (job->sweep == 0 && !method_snapshot_make_waits_for_build_ids(job))
        job->sweep = totals.sweep;
    /* All answers are there, and the next sweep writes them. */
    if (job->sweep == 0 && history_waits_until(tracker_history(job->daemon->tracker)) == 0)
        return daemon_sweep_soon(job->daemon);
    if (job->sweep == 0)
        return 0;
    if (totals.written_sweep >= job->sweep)
        return 1;
    return totals.error;
}

static bool method_snapshot_make_check_sweep(Job *job) {
    int r = method_snapshot_make_is_written(job);

    if (r == 0)
        return false;
    if (r > 0)
        return method_snapshot_make_build(job);
    job->failure = (SnapshotFailure){.error = SNAPSHOT_FAILED, .code = r};
    if (r == -ENOSPC || r == -EDQUOT)
        job->failure.error = SNAPSHOT_DISK_FULL;
    (void)method_snapshot_make_fail(job);
    return true;
}

/* Fixes the window at the moment that it counts from. */
static void method_snapshot_make_settle(Job *job) {
    SnapshotCall *asked = &job->asked;
    uint64_t mono = clock_monotonic_ns(), real = clock_ns(CLOCK_REALTIME), moment = mono;

    if (asked->has_at && asked->at_ns < real)
        moment = mono - MIN(mono, real - asked->at_ns);
    job->end_ns = moment + asked->follow_up_ns;
    if (asked->has_until && asked->until_ns > real)
        job->end_ns = mono + (asked->until_ns - real);
    if (asked->has_last)
        job->from_ns = moment > asked->last_ns ? moment - asked->last_ns : 1;
    /* A window without an end reaches up to this moment, not to the end of the build. */
    if (!asked->has_until && !asked->has_last)
        asked->until_ns = real - (mono - moment) + asked->follow_up_ns;
}

/* The wait may be long and the number of waiting calls is limited, so end it with its client. */
static int method_snapshot_make_wait_until(Job *job, uint64_t left_ns) {
    call_end_with_client(job->call);
    return loop_trigger_after(job->timer, MIN(left_ns, CHECK_NS));
}

static void method_snapshot_make_check_time(Job *job) {
    uint64_t real = clock_ns(CLOCK_REALTIME), now;

    if (job->phase == PHASE_WAIT) {
        if (job->asked.has_at && real < job->asked.at_ns) {
            if (clock_monotonic_ns() - job->reported_ns >= CHECK_NS)
                method_snapshot_make_report_progress(job);
            (void)method_snapshot_make_wait_until(job, job->asked.at_ns - real);
            return;
        }
        method_snapshot_make_settle(job);
        job->phase = PHASE_RECORD;
    }
    now = clock_monotonic_ns();
    if (job->phase == PHASE_RECORD && now < job->end_ns) {
        if (now - job->reported_ns >= CHECK_NS)
            method_snapshot_make_report_progress(job);
        (void)method_snapshot_make_wait_until(job, job->end_ns - now);
        return;
    }
    if (job->phase == PHASE_RECORD)
        method_snapshot_make_enter(job, PHASE_SWEEP);
}

static bool method_snapshot_make_check(void *userdata, Call *call _unused_) {
    Job *job = userdata;

    method_snapshot_make_check_time(job);
    if (job->phase == PHASE_SWEEP)
        return method_snapshot_make_check_sweep(job);
    if (job->phase != PHASE_DONE)
        return false;
    if (job->has_failed)
        (void)method_snapshot_make_fail(job);
    else
        method_snapshot_make_succeed(job);
    return true;
}

static int method_snapshot_make_on_timer(void *userdata) {
    waits_check(((Job *)userdata)->daemon->waits);
    return 0;
}

/* Whether the session records data for administrators only. The engine checks what was recorded
 * earlier, because that needs the manifests. */
static bool method_snapshot_make_is_sensitive(const Job *job) {
    const SessionEntry *entry = session_table_find(job->daemon->sessions, job->asked.session);

    return entry && entry->session && entry->sensitive;
}

int method_snapshot(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    Job *job = calloc(1, sizeof(*job));
    int r;

    if (!job)
        return -ENOMEM;
    job->daemon = daemon;
    job->call = call;
    r = snapshot_call_take(daemon, call, &job->asked);
    if (r == 0 && call_peer(call)->right < RIGHT_ADMIN && method_snapshot_make_is_sensitive(job))
        r = method_ended(call_fail_permission(call));
    if (r == 0)
        r = loop_add_deferred(daemon->loop, method_snapshot_make_on_timer, job, &job->timer);
    if (r != 0) {
        method_snapshot_make_job_free(job);
        return MIN(r, 0);
    }
    return waits_add(daemon->waits, call,
                     &(WaitOptions){.check = method_snapshot_make_check,
                                    .release = method_snapshot_make_job_free,
                                    .userdata = job});
}
