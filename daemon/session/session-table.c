/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/session-table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/clock.h"
#include "util/log.h"

/*
 * A member is there before and after its session. To end one takes two steps, since a disk may be
 * slow and the main thread waits for none: its events are closed at once, and when its writer says
 * that it is done the rest goes. To begin one takes two steps as well, beside the main thread:
 * its events are opened, one session after the other, and then its folder, and it records from
 * then on. A moment to stop by itself counts on through suspend.
 */

enum {
    RATE_PERIOD_SEC = 10,
    LOOK_SEC = 1,
    GIVE_UP_SEC = 8,
    RETRY_FIRST_SEC = 1,
    RETRY_LAST_SEC = 60,
    LATE_START_SEC = 10,
    ENDED_KEPT_MAX = 16,
};

#define WAIT_LOOK_NS 20000000ULL /* while the last build ids of a segment are read */

struct Roster {
    RosterOptions options;
    Member *members[ROSTER_MAX];
    size_t n;
    LoopSource *timer;
    uint64_t stopping_ns; /* since when the oldest one ends; 0: none does */
};

/* clang-format off */
static const char *const state_names[] = {
    [MEMBER_INACTIVE] = "inactive",
    [MEMBER_STARTING] = "starting",
    [MEMBER_ACTIVE]   = "active",
    [MEMBER_PAUSED]   = "paused",
    [MEMBER_STOPPING] = "stopping",
    [MEMBER_FAILED]   = "failed",
};
/* clang-format on */

const char *member_state_name(MemberState state) {
    return state_names[state];
}

int member_state_from_name(const char *name, MemberState *ret) {
    for (size_t i = 0; i < ARRAY_SIZE(state_names); i++)
        if (strcmp(name, state_names[i]) == 0) {
            *ret = (MemberState)i;
            return 0;
        }
    return -EINVAL;
}

static Member *member_free(Member *member) {
    sampler_opening_cancel(member->opening);
    sampler_opening_cancel(member->trial);
    json_decref(member->settings);
    free(member);
    return NULL;
}

static int on_timer(void *userdata);

int roster_new(const RosterOptions *options, Roster **ret) {
    Roster *roster = calloc(1, sizeof(*roster));
    int r;

    if (!roster)
        return -ENOMEM;
    roster->options = *options;
    r = loop_add_deferred(options->loop, on_timer, roster, &roster->timer);
    if (r < 0) {
        free(roster);
        return r;
    }
    *ret = roster;
    return 0;
}

Roster *roster_free(Roster *roster, bool keep_rings) {
    if (!roster)
        return NULL;
    for (size_t i = 0; i < roster->n; i++) {
        Member *member = roster->members[i];

        member->session = session_close(member->session, keep_rings);
        member_free(member);
    }
    loop_source_free(roster->timer);
    free(roster);
    return NULL;
}

size_t roster_count(const Roster *roster) {
    return roster->n;
}

Member *roster_at(const Roster *roster, size_t i) {
    return roster->members[i];
}

Member *roster_find(const Roster *roster, const char *name) {
    for (size_t i = 0; i < roster->n; i++)
        if (strcmp(roster->members[i]->config.name, name) == 0)
            return roster->members[i];
    return NULL;
}

bool member_records(const Member *member) {
    return member->session && member->state != MEMBER_STOPPING;
}

bool member_is_opening(const Member *member) {
    return member->awaits && !member->session;
}

bool member_samples(const Member *member) {
    bool rests = member->awaits && !member->was_opened;

    return (member->state == MEMBER_STARTING || member->state == MEMBER_ACTIVE) && !rests &&
           member->session && !sampler_is_waiting(session_sampler(member->session)) &&
           sampler_n_cpus(session_sampler(member->session)) > 0;
}

bool member_has_ended(const Member *member) {
    return member->runtime && member->state == MEMBER_INACTIVE && member->stop_reason;
}

static bool starts_late(const Member *member) {
    return clock_monotonic_ns() - member->starting_ns > LATE_START_SEC * NS_PER_SECOND;
}

/* A session that nobody wants to record now lacks nothing. */
static unsigned state_degraded(const Member *member) {
    switch (member->state) {
    case MEMBER_PAUSED:
        return DEGRADED_PAUSED;
    case MEMBER_FAILED:
        return DEGRADED_FAILED;
    case MEMBER_INACTIVE:
    case MEMBER_STOPPING:
        return !member->runtime && member->config.enabled ? DEGRADED_STOPPED : 0;
    case MEMBER_STARTING:
        return starts_late(member) ? DEGRADED_LATE_START : 0;
    case MEMBER_ACTIVE:
        break;
    }
    return 0;
}

unsigned member_degraded(const Member *member) {
    return state_degraded(member) |
           (member_records(member) ? session_degraded(member->session) : 0);
}

Member *roster_next(const Roster *roster, size_t *at) {
    while (*at < roster->n) {
        Member *member = roster->members[(*at)++];

        if (member_records(member))
            return member;
    }
    return NULL;
}

size_t roster_n_sampling(const Roster *roster) {
    size_t n = 0;

    for (size_t i = 0; i < roster->n; i++)
        n += member_samples(roster->members[i]);
    return n;
}

size_t roster_n_open(const Roster *roster) {
    size_t n = 0;

    for (size_t i = 0; i < roster->n; i++)
        n += member_records(roster->members[i]) || member_is_opening(roster->members[i]);
    return n;
}

int roster_add(Roster *roster, const SessionConfig *config, bool runtime, json_t *settings,
               Member **ret) {
    Member *member;

    if (roster->n == ROSTER_MAX)
        return -E2BIG;
    member = calloc(1, sizeof(*member));
    if (!member)
        return -ENOMEM;
    member->config = *config;
    member->runtime = runtime;
    member->settings = json_incref(settings);
    roster->members[roster->n++] = *ret = member;
    return 0;
}

void roster_remove(Roster *roster, Member *member) {
    size_t i = 0;

    assert(!member->session);
    while (roster->members[i] != member)
        i++;
    roster->n--;
    memmove(&roster->members[i], &roster->members[i + 1],
            (roster->n - i) * sizeof(*roster->members));
    member_free(member);
}

static void tell(const Roster *roster, const char *event, const Member *member, const char *text) {
    roster->options.on_event(roster->options.userdata, event, member, text);
}

/* It records, and may record more one day: a module is loaded, a probe is defined. */
static bool lacks_events(const Member *member) {
    return member_records(member) && !member->awaits &&
           plan_notes_left_out(sampler_notes(session_sampler(member->session)));
}

/* For the next member whose time comes, or to look after those that end. */
static int arm(Roster *roster) {
    uint64_t now = clock_ns(CLOCK_BOOTTIME), next = UINT64_MAX;

    for (size_t i = 0; i < roster->n; i++) {
        const Member *member = roster->members[i];

        if (member->state == MEMBER_STOPPING)
            next = MIN(next, now + (session_waits(member->session) ? WAIT_LOOK_NS
                                                                   : LOOK_SEC * NS_PER_SECOND));
        else if (member->stop_at_ns > 0 && member_records(member))
            next = MIN(next, member->stop_at_ns);
        else if ((member->state == MEMBER_FAILED && !member->awaits) ||
                 (lacks_events(member) && !member->trial))
            next = MIN(next, member->retry_at_ns);
    }
    return next == UINT64_MAX ? 0 : loop_trigger_after(roster->timer, next > now ? next - now : 0);
}

void roster_set_host(Roster *roster, const SessionHost *host) {
    roster->options.host = *host;
}

/* A failure that is like the one before is not logged again. */
static void keep_error(Member *member) {
    log_keep_error(member->error, sizeof(member->error));
    log_mute(member->error_logged[0] != '\0');
}

static void end_keep_error(void) {
    log_mute(false);
    log_keep_error(NULL, 0);
}

static void log_failure(const Roster *roster, Member *member, int error) {
    if (strcmp(member->error_logged, member->error) == 0)
        return;
    if (member->error_logged[0])
        (void)log_error(error, "%s", member->error);
    memcpy(member->error_logged, member->error, sizeof(member->error_logged));
    tell(roster, "failed", member, member->error);
}

static void retry_later(Member *member) {
    uint64_t delay_ns = member->retry_delay_ns;

    member->retry_delay_ns = delay_ns == 0
                                 ? RETRY_FIRST_SEC * NS_PER_SECOND
                                 : MIN(delay_ns * 2, (uint64_t)RETRY_LAST_SEC * NS_PER_SECOND);
    member->retry_at_ns = clock_ns(CLOCK_BOOTTIME) + member->retry_delay_ns;
}

static int begin_failed(Roster *roster, Member *member, SessionPart part, int error) {
    if (!member->error_logged[0])
        member->state_real_ns = clock_ns(CLOCK_REALTIME);

    /* Sweeps go on while its events are closed, and it is in none of them any more. */
    member->state = MEMBER_STOPPING;
    member->session = session_close(member->session, false);
    member->failed_part = part;
    member->failed_error = error;
    member->awaits = member->was_opened = false;
    member->state = MEMBER_FAILED;
    retry_later(member);
    log_failure(roster, member, error);
    (void)arm(roster);
    return error;
}

static int set_events(Member *member, bool paused) {
    return paused ? session_pause(member->session) : session_start(member->session);
}

int roster_open(Roster *roster, Member *member, bool paused) {
    int r;

    member->retry_paused = paused;
    keep_error(member);
    r = session_new(roster->options.host.sampler, &member->config, &member->session);
    if (r == 0)
        r = set_events(member, paused);
    end_keep_error();
    member->was_opened = r == 0;
    return r < 0 ? begin_failed(roster, member, SESSION_EVENTS, r) : 0;
}

/* With its events open. */
static int attach(Roster *roster, Member *member) {
    bool paused = member->retry_paused;
    int r;

    keep_error(member);
    r = session_attach(member->session, &roster->options.host);
    end_keep_error();
    if (r < 0)
        return begin_failed(roster, member, SESSION_STORE, r);
    snprintf(member->describe, sizeof(member->describe), "%s",
             sampler_describe(session_sampler(member->session)));
    member->sensitive = session_is_sensitive(member->session);
    member->state = paused ? MEMBER_PAUSED : MEMBER_STARTING;
    member->awaits = true;
    return 0;
}

/* One at a time: how much room there is for rings is known when those before are open. */
static int open_next(Roster *roster) {
    Member *next = NULL;
    int r;

    for (size_t i = roster->n; i-- > 0;) {
        if (roster->members[i]->opening)
            return 0;
        if (member_is_opening(roster->members[i]))
            next = roster->members[i];
    }
    if (!next)
        return 0;
    keep_error(next);
    r = sampler_opening_begin(roster->options.host.sampler, &next->config,
                              next->error_logged[0] != '\0', &next->opening);
    end_keep_error();
    return r < 0 ? begin_failed(roster, next, SESSION_EVENTS, r) : 0;
}

/* One that failed has failed until it records. */
static int begin(Roster *roster, Member *member, bool paused) {
    member->retry_paused = paused;
    member->next = NEXT_NOTHING;
    member->stop_reason = NULL;
    member->starting_ns = clock_monotonic_ns();
    if (member->session)
        return attach(roster, member);
    member->opening = sampler_opening_cancel(member->opening);
    member->awaits = true;
    if (member->state != MEMBER_FAILED)
        member->state = paused ? MEMBER_PAUSED : MEMBER_STARTING;
    return open_next(roster);
}

int roster_begin(Roster *roster, Member *member, bool paused) {
    member->error_logged[0] = '\0';
    member->retry_delay_ns = 0;
    return begin(roster, member, paused);
}

int roster_retry(Roster *roster, Member *member) {
    return begin(roster, member, member->retry_paused);
}

void roster_abandon(Roster *roster, Member *member) {
    member->opening = sampler_opening_cancel(member->opening);
    member->awaits = false;
    member->state = MEMBER_INACTIVE;
    member->stop_reason = NULL;
    (void)open_next(roster);
}

/* Its folder is there: from here on it records. */
static int settle(Roster *roster, Member *member) {
    int r = 0;

    if (!member->was_opened) {
        keep_error(member);
        r = set_events(member, member->state == MEMBER_PAUSED);
        end_keep_error();
    }
    if (r < 0)
        return begin_failed(roster, member, SESSION_EVENTS, r);
    member->awaits = member->was_opened = false;
    member->error[0] = member->error_logged[0] = '\0';
    member->retry_delay_ns = 0;
    retry_later(member);
    member->since_real_ns = member->state_real_ns = clock_ns(CLOCK_REALTIME);
    member->points[0] = member->points[1] = (MemberPoint){.at_ns = clock_monotonic_ns()};
    member->lost_told = member->rotations_told = 0;
    if (member->duration_ns > 0)
        r = roster_stop_after(roster, member, member->duration_ns);
    tell(roster, "started", member, member->describe);
    return r == 0 ? arm(roster) : r;
}

int roster_await(Roster *roster, Member *member) {
    int r;

    keep_error(member);
    r = session_await(member->session);
    end_keep_error();
    return r < 0 ? begin_failed(roster, member, SESSION_STORE, r) : settle(roster, member);
}

/* Its events are open: next is its place in the store. */
static void look_opening(Roster *roster, Member *member) {
    SamplerSession *sampler;
    int r = sampler_opening_end(member->opening, &sampler, member->error, sizeof(member->error));

    if (r == 0)
        return;
    member->opening = NULL;
    if (r > 0)
        r = session_new_opened(sampler, &member->config, &member->session);
    if (r < 0)
        (void)begin_failed(roster, member, SESSION_EVENTS, r);
    else
        (void)attach(roster, member);
}

/* The other events of a group may have changed with it, so the session begins anew. */
static void look_trial(Roster *roster, Member *member) {
    MemberNext next = member->state == MEMBER_PAUSED ? NEXT_BEGIN_PAUSED : NEXT_BEGIN;
    int r = sampler_trial_end(member->trial, session_sampler(member->session));

    if (r == 0)
        return;
    member->trial = NULL;
    retry_later(member);
    if (r > 0) {
        log_notice("Session '%s' begins anew, an event that it lacked can be recorded now",
                   member->config.name);
        (void)roster_stop(roster, member, PD_GAP_REOPENED);
        member->next = next;
    }
    (void)arm(roster);
}

static void look_awaiting(Roster *roster, Member *member) {
    int r;

    if (member->opening)
        look_opening(roster, member);
    if (!member->session)
        return;
    keep_error(member);
    r = session_is_open(member->session);
    end_keep_error();
    if (r < 0)
        (void)begin_failed(roster, member, SESSION_STORE, r);
    else if (r > 0)
        (void)settle(roster, member);
}

bool roster_is_changing(const Roster *roster) {
    for (size_t i = 0; i < roster->n; i++) {
        const Member *member = roster->members[i];

        if (member->awaits || member->trial ||
            (member->session && member->state == MEMBER_STOPPING))
            return true;
    }
    return false;
}

int roster_stop_after(Roster *roster, Member *member, uint64_t duration_ns) {
    member->stop_at_ns = duration_ns > 0 ? clock_ns(CLOCK_BOOTTIME) + duration_ns : 0;
    return arm(roster);
}

int roster_stop(Roster *roster, Member *member, PdGapReason reason) {
    int r;

    member->trial = sampler_opening_cancel(member->trial);
    session_leave(member->session, reason);
    r = roster->options.drain(roster->options.userdata);
    if (r < 0)
        return r;
    /* Sweeps go on while its events are closed, and it is in none of them any more. */
    member->state = MEMBER_STOPPING;
    member->stop_at_ns = member->duration_ns = 0;
    member->awaits = false;
    session_end(member->session);
    if (roster->stopping_ns == 0)
        roster->stopping_ns = clock_monotonic_ns();
    return arm(roster);
}

int roster_pause(Roster *roster, Member *member) {
    int r = session_pause(member->session);

    if (r < 0)
        return r;
    member->state = MEMBER_PAUSED;
    member->state_real_ns = clock_ns(CLOCK_REALTIME);
    tell(roster, "paused", member, "its events rest");
    return 0;
}

int roster_resume(Roster *roster, Member *member) {
    int r = member->awaits ? 0 : session_start(member->session);

    if (r < 0)
        return r;
    member->state = member->awaits ? MEMBER_STARTING : MEMBER_ACTIVE;
    member->state_real_ns = clock_ns(CLOCK_REALTIME);
    /* Its rate begins anew. */
    member->points[0] = member->points[1] = (MemberPoint){
        .at_ns = clock_monotonic_ns(), .samples = session_totals(member->session).samples};
    tell(roster, "resumed", member, "its events count again");
    return 0;
}

static void finish(Roster *roster, Member *member, const char *text) {
    MemberNext next = member->next;

    member->last = session_totals(member->session);
    member->session = session_close(member->session, false);
    member->state = MEMBER_INACTIVE;
    member->since_real_ns = member->stop_at_ns = 0;
    member->state_real_ns = clock_ns(CLOCK_REALTIME);
    tell(roster, "stopped", member, text);
    if (next == NEXT_BEGIN || next == NEXT_BEGIN_PAUSED)
        (void)roster_begin(roster, member, next == NEXT_BEGIN_PAUSED);
}

int roster_end(Roster *roster, Member *member, MemberNext next) {
    bool begins = next == NEXT_BEGIN || next == NEXT_BEGIN_PAUSED;
    PdGapReason reason = begins ? PD_GAP_RELOADED : PD_GAP_STOPPED;
    int r = member_records(member) ? roster_stop(roster, member, reason) : 0;

    member->next = next;
    member->stop_reason = NULL;
    return r;
}

void roster_look(Roster *roster) {
    bool gives_up = roster->stopping_ns > 0 &&
                    clock_monotonic_ns() - roster->stopping_ns > GIVE_UP_SEC * NS_PER_SECOND;
    bool left = false;

    for (size_t i = roster->n; i-- > 0;) {
        Member *member = roster->members[i];

        if (member->awaits)
            look_awaiting(roster, member);
        if (member->trial)
            look_trial(roster, member);
        if (member->state != MEMBER_STOPPING)
            continue;
        if (gives_up)
            session_give_up(member->session);
        else if (!session_has_ended(member->session)) {
            left = true;
            continue;
        }
        finish(roster, member, member->stop_reason ?: "its segment is finished");
    }
    if (!left)
        roster->stopping_ns = 0;
    (void)open_next(roster);
}

/* The newest ones are last. */
void roster_forget_ended(Roster *roster) {
    size_t kept = 0;

    for (size_t i = roster->n; i-- > 0;) {
        Member *member = roster->members[i];
        bool goes = member->runtime || member->next == NEXT_REMOVE;

        if (member_has_ended(member) && member->next != NEXT_REMOVE)
            goes = ++kept > ENDED_KEPT_MAX;
        if (goes && member->state == MEMBER_INACTIVE)
            roster_remove(roster, member);
    }
}

/* In the words of who named them. */
static const char *ended_text(const SessionConfig *config) {
    if (config->n_tids > 0)
        return config->n_tids == 1 ? "its thread has ended" : "its threads have ended";
    return config->n_pids == 1 ? "its process has ended" : "its processes have ended";
}

static void note_ended(Member *member) {
    member->stop_reason = ended_text(&member->config);
    log_notice("Stopping session '%s', %s", member->config.name, member->stop_reason);
}

int roster_stop_ended(Roster *roster) {
    int r = 0;

    for (size_t i = 0; r == 0 && i < roster->n; i++) {
        Member *member = roster->members[i];

        if (!member_records(member) || member->awaits ||
            !sampler_has_ended(session_sampler(member->session)))
            continue;
        note_ended(member);
        r = roster_stop(roster, member, PD_GAP_STOPPED);
    }
    return r;
}

SessionTotals member_totals(const Member *member) {
    return member->session ? session_totals(member->session) : member->last;
}

static int stop_due(Roster *roster) {
    uint64_t now = clock_ns(CLOCK_BOOTTIME);
    int r = 0;

    for (size_t i = 0; r == 0 && i < roster->n; i++) {
        Member *member = roster->members[i];

        if (member->stop_at_ns == 0 || member->stop_at_ns > now || !member_records(member))
            continue;
        log_notice("Stopping session '%s', the time it was given is over", member->config.name);
        r = roster_stop(roster, member, PD_GAP_STOPPED);
    }
    return r;
}

static int retry_one(Roster *roster, Member *member, uint64_t now) {
    /* The time that it was given is over, and it never recorded. */
    if (member->stop_at_ns > 0 && member->stop_at_ns <= now) {
        member->state = MEMBER_INACTIVE;
        member->stop_at_ns = 0;
        return 0;
    }
    /* They ended while a recorder died, and another process may have their number some day. */
    if (member->runtime && member->failed_part == SESSION_EVENTS &&
        member->failed_error == -ESRCH) {
        note_ended(member);
        member->state = MEMBER_INACTIVE;
        return 0;
    }
    return roster->options.on_retry(roster->options.userdata, member);
}

static int retry_due(Roster *roster) {
    uint64_t now = clock_ns(CLOCK_BOOTTIME);
    int r = 0;

    for (size_t i = 0; r == 0 && i < roster->n; i++)
        if (roster->members[i]->state == MEMBER_FAILED && !roster->members[i]->awaits &&
            roster->members[i]->retry_at_ns <= now)
            r = retry_one(roster, roster->members[i], now);
        else if (lacks_events(roster->members[i]) && !roster->members[i]->trial &&
                 roster->members[i]->retry_at_ns <= now)
            (void)sampler_trial_begin(session_sampler(roster->members[i]->session),
                                      &roster->members[i]->trial);
    return r;
}

static int on_timer(void *userdata) {
    Roster *roster = userdata;
    int r = stop_due(roster);

    if (r == 0)
        r = retry_due(roster);
    if (r < 0)
        return r;
    r = roster->options.on_look(roster->options.userdata);
    return r < 0 ? r : arm(roster);
}

void roster_note_rates(Roster *roster, uint64_t now_ns) {
    Member *member;

    for (size_t at = 0; (member = roster_next(roster, &at));) {
        if (now_ns - member->points[1].at_ns < RATE_PERIOD_SEC * NS_PER_SECOND)
            continue;
        member->points[0] = member->points[1];
        member->points[1] =
            (MemberPoint){.at_ns = now_ns, .samples = session_totals(member->session).samples};
    }
}

double member_rate(const Member *member, uint64_t now_ns) {
    const MemberPoint *from = &member->points[0];
    uint64_t samples;

    if (!member_samples(member) || now_ns <= from->at_ns)
        return 0;
    samples = session_totals(member->session).samples;
    return (double)(samples - from->samples) * (double)NS_PER_SECOND /
           (double)(now_ns - from->at_ns);
}
