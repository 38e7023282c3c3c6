/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>

#include "method/method-private.h"
#include "protocol/value.h"
#include "session/account.h"
#include "session/degraded.h"
#include "store/window/listing.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/text.h"

/*
 * Our status: a part for everyone and, for those who may read, the sessions and the store. Totals
 * are current; rates are averages of the last ten to twenty seconds.
 */

enum { HOST_NAME_MAX_BYTES = 256, BOOT_ID_BYTES = 64 };

static json_t *method_status_text_of(const Buffer *text) {
    return buffer_error(text) < 0
               ? NULL
               : json_stringn(text->data ? (const char *)text->data : "", text->size);
}

/* session NULL: of the whole daemon. */
static json_t *method_status_degraded_json(unsigned set, const char *session) {
    size_t n;
    const DegradedReason *reasons = degraded_reasons(&n);
    json_t *list = json_array();

    for (size_t i = 0; list && i < n; i++) {
        _cleanup_(buffer_done) Buffer remedy = {};

        if (!(set & reasons[i].reason))
            continue;
        degraded_put_remedy(&remedy, &reasons[i], session);
        value_append(&list,
                     json_pack("{s:s, s:s, s:o}", "reason", reasons[i].name, "meaning",
                               reasons[i].meaning, "remedy", method_status_text_of(&remedy)));
    }
    return list;
}

/* The open events, or the configured ones when none is open. */
static json_t *method_status_events_json(const SessionEntry *entry) {
    json_t *list = json_array();
    const PdEvents *events;

    if (!session_entry_records(entry)) {
        value_append(&list, answer_text(entry->config.events));
        return list;
    }
    events = sampler_events(session_sampler(entry->session));
    /* The last event is that of side-band. */
    for (size_t i = 0; i + 1 < pd_events_count(events); i++) {
        const char *name = pd_events_at(events, i)->name;

        value_append(&list, answer_text(name ? name : ""));
    }
    return list;
}

/* One sentence for each event that the session lacks. */
static json_t *method_status_missing_json(const SessionEntry *entry) {
    json_t *list = json_array();
    const PlanNotes *notes;

    if (!session_entry_records(entry))
        return list;
    notes = sampler_notes(session_sampler(entry->session));
    for (size_t i = 0; list && i < notes->n; i++)
        if (notes->items[i].kind == PLAN_LEFT_OUT)
            value_append(&list, answer_text(notes->items[i].text));
    return list;
}

/* "unwind:16384", of a session that records; else nothing. */
static void method_status_put_call_graph(const SessionEntry *entry, Buffer *out) {
    if (session_entry_records(entry))
        sampler_put_call_graph(session_sampler(entry->session), out);
}

static const char *method_status_call_graph_words(const SessionEntry *entry) {
    static const char *const words[] = {
        [CALL_GRAPH_NONE] = "no call graphs",        [CALL_GRAPH_FP] = "fp call graphs",
        [CALL_GRAPH_DWARF] = "dwarf call graphs",    [CALL_GRAPH_LBR] = "lbr call graphs",
        [CALL_GRAPH_UNWIND] = "unwound call graphs", [CALL_GRAPH_AUTO] = "call graphs"};

    return words[session_entry_records(entry) ? sampler_call_graph(session_sampler(entry->session))
                                              : entry->config.call_graph];
}

static json_t *method_status_describe_json(const SessionEntry *entry) {
    const SessionConfig *config = &entry->config;
    _cleanup_(buffer_done) Buffer text = {};

    text_escape_str(&text, entry->describe[0] ? entry->describe : config->events);
    if (!entry->describe[0] && config->period > 0)
        text_printf(&text, " each %" PRIu64, config->period);
    else if (!entry->describe[0] && config->frequency_hz == CONFIG_FREQUENCY_MAX)
        text_puts(&text, " at the highest rate that is allowed");
    else if (!entry->describe[0])
        text_printf(&text, " at %" PRIu64 " Hz", config->frequency_hz);
    text_printf(&text, ", %s", method_status_call_graph_words(entry));
    return method_status_text_of(&text);
}

static json_t *method_status_target_json(const SessionConfig *config) {
    _cleanup_(buffer_done) Buffer text = {};

    if (config->cgroup[0]) {
        text_puts(&text, "cgroup ");
        text_escape_str(&text, config->cgroup);
    }
    for (uint32_t i = 0; i < config->n_pids; i++)
        text_printf(&text, "%s%" PRIu32, i > 0 ? "," : "pid ", config->pids[i]);
    for (uint32_t i = 0; i < config->n_tids; i++)
        text_printf(&text, "%s%" PRIu32, i > 0 ? "," : "tid ", config->tids[i]);
    if (config->cpus[0])
        text_printf(&text, "%scpu %s", text.size > 0 ? ", " : "", config->cpus);
    if (text.size == 0)
        text_puts(&text, "all");
    return method_status_text_of(&text);
}

static json_t *method_status_key_json(const SessionConfig *config, const char *name) {
    _cleanup_(buffer_done) Buffer text = {};

    config_print(config_key("Session", name), config, &text);
    return method_status_text_of(&text);
}

/* Converted to the current wall clock. */
static uint64_t method_status_stops_real_ns(const SessionEntry *entry) {
    uint64_t now = clock_ns(CLOCK_BOOTTIME), real = clock_ns(CLOCK_REALTIME);

    if (entry->stop_at_ns == 0)
        return 0;
    return entry->stop_at_ns > now ? real + (entry->stop_at_ns - now) : real;
}

/* 0: it samples by period only, or uses the maximum frequency, which is unknown while it is
 * closed. */
static uint64_t method_status_frequency_of(const SessionEntry *entry) {
    const SessionConfig *config = &entry->config;

    if (config->period > 0)
        return 0;
    if (config->frequency_hz != CONFIG_FREQUENCY_MAX)
        return config->frequency_hz;
    return session_entry_records(entry) ? sampler_frequency(session_sampler(entry->session)) : 0;
}

static const char *method_status_state_word(const SessionEntry *entry) {
    return session_entry_waits(entry) ? "waiting" : session_state_name(entry->state);
}

/* How the session is configured. */
static json_t *method_status_session_nature(const SessionEntry *entry) {
    const SessionConfig *config = &entry->config;
    size_t cpus =
        session_entry_records(entry) ? sampler_n_cpus(session_sampler(entry->session)) : 0;

    return json_pack(
        "{s:s, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o}",
        "name", config->name, "state", method_status_state_word(entry), "runtime", entry->runtime,
        "sensitive", entry->sensitive, "describe", method_status_describe_json(entry), "events",
        method_status_events_json(entry), "frequency",
        answer_count(method_status_frequency_of(entry)), "period", answer_count(config->period),
        "callGraph", method_status_key_json(config, "CallGraph"), "cpus", answer_count(cpus),
        "target", method_status_target_json(config), "layout",
        method_status_key_json(config, "Layout"), "sinceUsec", answer_time(entry->state_real_ns),
        "stopsUsec", answer_time(method_status_stops_real_ns(entry)), "error",
        answer_text_or_null(entry->error), "stopReason",
        answer_text_or_null(entry->stop_reason ?: ""), "missingEvents",
        method_status_missing_json(entry));
}

/* NULL where no stacks are unwound. */
static json_t *method_status_stacks_json(const SessionTotals *totals) {
    json_t *stacks = totals->is_unwound ? json_object() : json_null();

    if (!totals->is_unwound)
        return stacks;
    for (unsigned i = 0; stacks && i < UNWIND_VERDICTS; i++)
        value_set(&stacks, unwind_verdict_name(i), answer_count(totals->stacks.samples[i]));
    value_set(&stacks, "stackBytes", answer_count(totals->stack_bytes));
    value_set(&stacks, "heldInRing", answer_count(totals->held_samples));
    return stacks;
}

/* The call graphs that it takes, why, and what they cost. */
static json_t *method_status_session_cost(const SessionEntry *entry) {
    _cleanup_(buffer_done) Buffer used = {}, reason = {};
    SamplerRings rings = {};

    method_status_put_call_graph(entry, &used);
    if (session_entry_records(entry)) {
        sampler_put_call_graph_reason(session_sampler(entry->session), &reason);
        rings = sampler_rings(session_sampler(entry->session));
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:f}", "callGraphUsed",
                     used.size > 0 ? method_status_text_of(&used) : json_null(), "callGraphReason",
                     reason.size > 0 ? method_status_text_of(&reason) : json_null(), "ringBytes",
                     answer_count(rings.bytes), "ringMsec", answer_count(rings.span_ms),
                     "bytesPerSecond", session_entry_byte_rate(entry, clock_monotonic_ns()));
}

/* The figures of the session so far. */
static json_t *method_status_session_figures(const Daemon *daemon, const SessionEntry *entry) {
    SessionTotals totals = session_entry_totals(entry);
    bool is_open = session_entry_records(entry) && session_has_segment(entry->session);
    uint64_t oldest = 0, newest = 0;
    StoreCoverage coverage;

    (void)store_span(daemon->store, entry->config.name, &oldest, &newest);
    coverage = store_coverage(daemon->store, entry->config.name);
    return json_pack(
        "{s:o, s:o, s:o, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "samples", answer_count(totals.samples), "lost", answer_count(totals.lost), "throttled",
        answer_count(totals.throttles), "samplesPerSecond",
        session_entry_rate(entry, clock_monotonic_ns()), "storedBytes",
        answer_count(totals.stored_bytes), "rawBytes", answer_count(totals.raw_bytes), "segments",
        answer_count(totals.segments + is_open), "segment",
        is_open ? answer_text(session_path(entry->session)) : json_null(), "segmentSinceUsec",
        answer_time(is_open ? totals.segment_real_ns : 0), "oldestUsec", answer_time(oldest),
        "newestUsec", answer_time(newest), "reachUsec",
        answer_time(store_session_reach_ns(daemon->store, entry->config.name)), "queueBytes",
        answer_count(totals.queue_bytes), "degraded",
        method_status_degraded_json(session_entry_degraded(entry), entry->config.name), "coverage",
        coverage_json(&coverage), "stacks", method_status_stacks_json(&totals));
}

json_t *session_json(const Daemon *daemon, const SessionEntry *entry) {
    json_t *session = method_status_session_nature(entry),
           *figures = method_status_session_figures(daemon, entry),
           *cost = method_status_session_cost(entry);

    if (!session || !figures || !cost || json_object_update(session, figures) < 0 ||
        json_object_update(session, cost) < 0) {
        json_decref(session);
        session = NULL;
    }
    json_decref(figures);
    json_decref(cost);
    return session;
}

static json_t *method_status_sessions_json(const Daemon *daemon) {
    json_t *list = json_array();

    for (size_t i = 0; list && i < session_table_count(daemon->sessions); i++)
        value_append(&list, session_json(daemon, session_table_at(daemon->sessions, i)));
    return list;
}

static json_t *method_status_store_json(const Daemon *daemon) {
    StoreUse use = store_use(daemon->store);
    SnapshotUse snapshots = snapshot_use(daemon->snapshots);
    BinaryUse binaries = binary_store_use(binaries_store(daemon->binaries));
    uint64_t oldest = 0, newest = 0;

    (void)store_span(daemon->store, NULL, &oldest, &newest);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o}", "path",
                     answer_text(daemon->store_path), "usedBytes", answer_count(use.used_bytes),
                     "limitBytes", answer_count(use.limit_bytes), "freeBytes",
                     answer_count(use.free_bytes), "reachUsec", answer_time(use.reach_ns),
                     "oldestUsec", answer_time(oldest), "snapshotBytes",
                     answer_count(snapshots.used_bytes), "snapshotLimitBytes",
                     answer_count(snapshots.limit_bytes), "volatile",
                     daemon->config->storage == STORAGE_VOLATILE, "binaries",
                     answer_count(binaries.n), "binaryBytes", answer_count(binaries.bytes),
                     "binaryLimitBytes", answer_count(binaries.limit_bytes));
}

static double method_status_percent_since(const Daemon *daemon, uint64_t used_ns) {
    uint64_t now = clock_monotonic_ns(), from = daemon->cpu_before.at_ns;

    return now <= from ? 0 : 100.0 * (double)used_ns / (double)(now - from);
}

double daemon_cpu_percent(const Daemon *daemon) {
    return method_status_percent_since(daemon,
                                       account_cpu_ns(daemon->tracker) - daemon->cpu_before.cpu_ns);
}

double daemon_scan_percent(const Daemon *daemon) {
    return method_status_percent_since(daemon, account_scan_ns(daemon->tracker) -
                                                   daemon->cpu_before.scan_ns);
}

static unsigned method_status_all_degraded(const Daemon *daemon) {
    unsigned set = daemon_degraded(daemon);

    for (size_t i = 0; i < session_table_count(daemon->sessions); i++)
        set |= session_entry_degraded(session_table_at(daemon->sessions, i));
    return set;
}

static const char *method_status_state_of(const Daemon *daemon) {
    if (daemon->stopping)
        return "stopping";
    if (!daemon->is_ready)
        return "starting";
    return session_table_n_sampling(daemon->sessions) > 0 ? "recording" : "idle";
}

static json_t *method_status_coarse(const Daemon *daemon) {
    char host[HOST_NAME_MAX_BYTES] = "", boot[BOOT_ID_BYTES] = "";

    (void)gethostname(host, sizeof(host) - 1);
    (void)file_read_text("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
    return json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o}", "version", PROFD_VERSION, "hostname",
                     answer_text(host), "bootId", answer_text(boot), "state",
                     method_status_state_of(daemon), "sinceUsec",
                     answer_time(daemon->began_real_ns), "restarts",
                     answer_count(daemon->keeper.restarts), "degraded",
                     method_status_degraded_json(method_status_all_degraded(daemon), NULL));
}

static json_t *method_status_fine(const Daemon *daemon) {
    uint64_t unidentified = history_counts(tracker_history(daemon->tracker)).unidentified;

    return json_pack(
        "{s:o, s:o, s:f, s:f, s:o, s:o}", "sessions", method_status_sessions_json(daemon), "store",
        method_status_store_json(daemon), "cpuPercent", daemon_cpu_percent(daemon),
        "scanCpuPercent", daemon_scan_percent(daemon), "memoryBytes",
        answer_count(account_memory_bytes()), "unidentified", answer_count(unidentified));
}

int method_ping(void *userdata _unused_, Call *call) {
    return call_reply(call, json_object());
}

static void method_status_learn(void *userdata) {
    store_learn_span(((const Daemon *)userdata)->store);
}

static void method_status_on_learned(void *userdata) {
    ((Daemon *)userdata)->learns = false;
}

/* The manifests that tell how far back the store reaches are unread, so let the housekeeper read
 * them: the next status call has the answer. */
static void method_status_learn_span(Daemon *daemon) {
    uint64_t oldest, newest;

    if (!daemon->learns && !store_span(daemon->store, NULL, &oldest, &newest))
        daemon->learns = housekeeper_add(daemon->housekeeper,
                                         &(WorkerJob){.run = method_status_learn,
                                                      .done = method_status_on_learned,
                                                      .userdata = daemon},
                                         false) == 0;
}

int method_get_status(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    bool may_read = call_peer(call)->right >= RIGHT_READ;
    uint64_t now_ns = clock_monotonic_ns();
    json_t *status, *fine;

    if (now_ns - daemon->sweep.status_ns >= NS_PER_SECOND)
        daemon_update_status(daemon, now_ns);
    method_status_learn_span(daemon);
    status = method_status_coarse(daemon);
    fine = may_read ? method_status_fine(daemon)
                    : json_pack("{s:n, s:n, s:n, s:n, s:n, s:n}", "sessions", "store", "cpuPercent",
                                "scanCpuPercent", "memoryBytes", "unidentified");
    if (!status || !fine || json_object_update(status, fine) < 0) {
        json_decref(status);
        json_decref(fine);
        return -ENOMEM;
    }
    json_decref(fine);
    return call_reply(call, status);
}

int method_monitor(void *userdata, Call *call) {
    Daemon *daemon = userdata;

    return monitor_subscribe(daemon->monitor, call, "profd " PROFD_VERSION);
}
