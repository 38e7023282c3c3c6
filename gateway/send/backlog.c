/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/backlog.h"

#include <string.h>

#include "util/hash.h"

/*
 * The backlog is a list of spans; this decides how it is worked off: from the oldest time on, in
 * windows that end where intervals end, so that what is sent late has the same borders as what is
 * sent live. An engine that refuses old profiles is not asked for a favour: what is about to be too
 * old is dropped and counted. With a share, whole intervals are left out, by a hash of host and
 * time, so that at any moment some hosts of a fleet send and each host does now and then.
 */

#define BACKLOG_SEED UINT64_C(0x9d6e3f21)

static uint64_t backlog_floor(const BacklogRules *rules, uint64_t ns) {
    return ns - ns % rules->interval_ns;
}

bool backlog_has_share(const BacklogRules *rules, uint64_t since_ns) {
    Bytes host = {(const uint8_t *)rules->host, strlen(rules->host)};

    return hash_u64(hash_bytes(BACKLOG_SEED, host), since_ns / rules->interval_ns) % 100 <
           rules->share_percent;
}

void backlog_add(SendState *state, Range range, uint64_t now_ns) {
    uint64_t first = now_ns > BACKLOG_REACH_NS ? now_ns - BACKLOG_REACH_NS : 0;

    if (range.since_ns < first) {
        uint64_t end = MIN(first, range.until_ns);

        state->counters.expired_ns += end - range.since_ns;
        range.since_ns = end;
    }
    state->counters.expired_ns += range_list_add(&state->unsent, range);
}

/* Counts the intervals before `until_ns` that are beyond the share, and returns their length: these
 * never were to be sent, so they are not too old. */
static uint64_t backlog_thin(SendState *state, const BacklogRules *rules, uint64_t until_ns) {
    uint64_t thinned_ns = 0;

    for (size_t i = 0; rules->share_percent < 100 && i < state->unsent.n; i++) {
        uint64_t since = state->unsent.items[i].since_ns, next;
        uint64_t until = MIN(state->unsent.items[i].until_ns, until_ns);

        for (; since < until; since = next) {
            next = MIN(backlog_floor(rules, since) + rules->interval_ns, until);
            if (backlog_has_share(rules, since))
                continue;
            state->counters.thinned_intervals++;
            thinned_ns += next - since;
        }
    }
    return thinned_ns;
}

void backlog_forget(SendState *state, Range range) {
    uint64_t before_ns = range_list_total(&state->unsent);
    uint64_t dropped_ns = range_list_remove(&state->unsent, range);

    state->counters.expired_ns += dropped_ns;
    state->counters.missing_ns += before_ns - range_list_total(&state->unsent) - dropped_ns;
}

/* An interval that begins shortly after the limit would be too old when it arrives. */
static void backlog_expire(SendState *state, const BacklogRules *rules, const BacklogTime *time) {
    uint64_t limit, thinned_ns;

    if (rules->max_age_ns == 0 || time->now_ns < rules->max_age_ns)
        return;
    limit = backlog_floor(rules, time->now_ns - rules->max_age_ns) + 2 * rules->interval_ns;
    limit = MIN(limit, time->live_ns);
    thinned_ns = backlog_thin(state, rules, limit);
    state->counters.expired_ns += range_list_expire(&state->unsent, limit) - thinned_ns;
}

/* Takes the rest of an interval that was sent in part. If it is not wanted any more it is
 * forgotten, and if it lies in the future it waits. */
static bool backlog_take_partial(SendState *state, const BacklogTime *time, Range *ret) {
    for (size_t i = 0; i < state->n_partials;) {
        Range range = state->partials[i].range;

        if (!range_list_has(&state->unsent, range)) {
            state->n_partials--;
            memmove(state->partials + i, state->partials + i + 1,
                    (state->n_partials - i) * sizeof(*state->partials));
        } else if (range.until_ns > time->now_ns) {
            i++;
        } else {
            *ret = range;
            return true;
        }
    }
    return false;
}

/* A clock that was set back leaves a span that is still to come. Of that nothing can be read yet;
 * its windows have what was recorded at both times. */
static uint64_t backlog_past(const BacklogRules *rules, const BacklogTime *time,
                             uint64_t until_ns) {
    return until_ns > time->now_ns ? backlog_floor(rules, time->now_ns) : until_ns;
}

bool backlog_next(SendState *state, const BacklogRules *rules, unsigned merge,
                  const BacklogTime *time, Range *ret) {
    if (rules->share_percent < 100)
        merge = 1;
    backlog_expire(state, rules, time);
    if (backlog_take_partial(state, time, ret))
        return true;
    while (state->unsent.n > 0) {
        Range range = state->unsent.items[0];
        uint64_t end = backlog_floor(rules, range.since_ns) + merge * rules->interval_ns;

        range.until_ns = backlog_past(rules, time, MIN(range.until_ns, end));
        if (range.since_ns >= range.until_ns)
            return false;
        if (backlog_has_share(rules, range.since_ns)) {
            *ret = range;
            return true;
        }
        state->counters.thinned_intervals++;
        send_state_settle(state, range);
    }
    return false;
}
