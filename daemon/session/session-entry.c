/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/session-entry.h"

#include <errno.h>
#include <string.h>

#include "util/clock.h"

/*
 * Questions about one entry: the name of its state, whether it records, and why it records less
 * than its configuration asks for; and since when it waits.
 */

enum { LATE_START_SEC = 10 };

/* clang-format off */
static const char *const state_names[] = {
    [SESSION_INACTIVE] = "inactive",
    [SESSION_STARTING] = "starting",
    [SESSION_ACTIVE]   = "active",
    [SESSION_PAUSED]   = "paused",
    [SESSION_STOPPING] = "stopping",
    [SESSION_FAILED]   = "failed",
};
/* clang-format on */

const char *session_state_name(SessionState state) {
    return state_names[state];
}

int session_state_from_name(const char *name, SessionState *ret) {
    for (size_t i = 0; i < ARRAY_SIZE(state_names); i++)
        if (strcmp(name, state_names[i]) == 0) {
            *ret = (SessionState)i;
            return 0;
        }
    return -EINVAL;
}

bool session_entry_records(const SessionEntry *entry) {
    return entry->session && entry->state != SESSION_STOPPING;
}

bool session_entry_is_opening(const SessionEntry *entry) {
    return entry->awaits && !entry->session;
}

bool session_entry_samples(const SessionEntry *entry) {
    bool rests = entry->awaits && !entry->was_opened;

    return (entry->state == SESSION_STARTING || entry->state == SESSION_ACTIVE) && !rests &&
           entry->session && !sampler_is_waiting(session_sampler(entry->session)) &&
           sampler_n_cpus(session_sampler(entry->session)) > 0;
}

static bool session_entry_is_meant_to_record(const SessionEntry *entry) {
    return entry->session && (entry->state == SESSION_STARTING || entry->state == SESSION_ACTIVE);
}

bool session_entry_waits(const SessionEntry *entry) {
    return session_entry_is_meant_to_record(entry) &&
           sampler_is_waiting(session_sampler(entry->session));
}

void session_entry_note_waiting(SessionEntry *entry) {
    bool waits = session_entry_waits(entry);

    if (!session_entry_is_meant_to_record(entry))
        return;
    if (entry->knows_waiting && waits != entry->is_waiting)
        entry->state_real_ns = clock_ns(CLOCK_REALTIME);
    entry->knows_waiting = true;
    entry->is_waiting = waits;
}

bool session_entry_has_ended(const SessionEntry *entry) {
    return entry->runtime && entry->state == SESSION_INACTIVE && entry->stop_reason;
}

static bool session_entry_starts_late(const SessionEntry *entry) {
    return clock_monotonic_ns() - entry->starting_ns > LATE_START_SEC * NS_PER_SECOND;
}

/* A session that is stopped on purpose is not degraded. */
static unsigned session_entry_state_degraded(const SessionEntry *entry) {
    switch (entry->state) {
    case SESSION_PAUSED:
        return DEGRADED_PAUSED;
    case SESSION_FAILED:
        return DEGRADED_FAILED;
    case SESSION_INACTIVE:
    case SESSION_STOPPING:
        return !entry->runtime && entry->config.enabled ? DEGRADED_STOPPED : 0;
    case SESSION_STARTING:
        return session_entry_starts_late(entry) ? DEGRADED_LATE_START : 0;
    case SESSION_ACTIVE:
        break;
    }
    return 0;
}

unsigned session_entry_degraded(const SessionEntry *entry) {
    return session_entry_state_degraded(entry) |
           (session_entry_records(entry) ? session_degraded(entry->session) : 0);
}

SessionTotals session_entry_totals(const SessionEntry *entry) {
    return entry->session ? session_totals(entry->session) : entry->last;
}

SessionPoint session_entry_point(const SessionEntry *entry, uint64_t now_ns) {
    SessionTotals totals = session_totals(entry->session);

    return (SessionPoint){
        .at_ns = now_ns, .samples = totals.samples, .stored_bytes = totals.stored_bytes};
}

static double session_entry_per_second(uint64_t n, const SessionPoint *from, uint64_t now_ns) {
    return (double)n * (double)NS_PER_SECOND / (double)(now_ns - from->at_ns);
}

double session_entry_rate(const SessionEntry *entry, uint64_t now_ns) {
    const SessionPoint *from = &entry->points[0];

    if (!session_entry_samples(entry) || now_ns <= from->at_ns)
        return 0;
    return session_entry_per_second(session_totals(entry->session).samples - from->samples, from,
                                    now_ns);
}

double session_entry_byte_rate(const SessionEntry *entry, uint64_t now_ns) {
    const SessionPoint *from = &entry->points[0];

    if (!session_entry_samples(entry) || now_ns <= from->at_ns)
        return 0;
    return session_entry_per_second(
        session_totals(entry->session).stored_bytes - from->stored_bytes, from, now_ns);
}
