/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/sender-offer.h"

#include "send/sender-delivery.h"
#include "util/clock.h"

/*
 * Takes live intervals: which time lies before one, whether it is sent at once, and what a clock
 * that was set back means for the list of what is not sent.
 */

/* A gap that is longer than its time by more than this was made by a clock. */
#define SENDER_JUMP_INTERVALS 2

static Delivery **sender_free_live(Sender *sender) {
    for (size_t i = 0; i < SENDER_LIVE_MAX; i++)
        if (!sender->live[i])
            return &sender->live[i];
    return NULL;
}

static bool sender_is_live(const Sender *sender) {
    for (size_t i = 0; i < SENDER_LIVE_MAX; i++)
        if (sender->live[i])
            return true;
    return false;
}

/* After a failure one request at a time shows whether the engine is back. */
static bool sender_may_send_live(const Sender *sender) {
    if (sender->failures > 0)
        return !sender_is_waiting(sender) && !sender->backlog && !sender_is_live(sender);
    return true;
}

/* Finds where the gap before an interval begins. CLOCK_BOOTTIME says how long the time between two
 * intervals of one run lasted. If the wall clock says more, somebody set a clock right that was
 * behind: then only the time in which the gateway was absent is a gap. */
static uint64_t sender_gap_since(Sender *sender, uint64_t since_ns) {
    const SendState *state = &sender->state;
    uint64_t now_ns = clock_ns(CLOCK_BOOTTIME), interval_ns = sender->rules.interval_ns;
    uint64_t passed_ns = sender->offered_ns > 0 ? now_ns - sender->offered_ns : UINT64_MAX / 2;
    uint64_t away_ns = 0;

    sender->offered_ns = now_ns;
    if (since_ns <= state->live_ns ||
        since_ns - state->live_ns <= passed_ns + SENDER_JUMP_INTERVALS * interval_ns)
        return state->live_ns;
    if (passed_ns >= 2 * interval_ns)
        away_ns = (passed_ns / interval_ns - 1) * interval_ns;
    return MIN(state->high_ns, since_ns - away_ns);
}

/* The time before an interval that was not followed is read as windows, except a sleep in it. */
static void sender_add_gap(Sender *sender, Range gap, const Interval *interval, uint64_t now_ns) {
    backlog_add(&sender->state, gap, now_ns);
    for (size_t i = 0; i < interval->n_sleeps; i++) {
        const IntervalSleep *sleep = &interval->sleeps[i];

        backlog_forget(&sender->state, (Range){MAX(sleep->since_ns, gap.since_ns),
                                               MIN(sleep->until_ns, gap.until_ns)});
    }
}

static void sender_move(Sender *sender, uint64_t since_ns, uint64_t until_ns) {
    sender->state.live_ns = until_ns;
    sender->state.high_ns = MAX(sender->state.high_ns, until_ns);
    /* A clock was set back: what was sent is not that new. */
    if (sender->newest_ns > until_ns)
        sender->newest_ns = since_ns;
}

/* An interval beyond the share joins what waits before it, so that an absence stays one range; the
 * backlog leaves it out and counts it then. */
static bool sender_continues_backlog(const Sender *sender, Range range) {
    const RangeList *unsent = &sender->state.unsent;

    return unsent->n > 0 && unsent->items[unsent->n - 1].until_ns == range.since_ns;
}

/* The clock was set back, and what was recorded at this time before is not sent yet. A live
 * interval lacks that, so it is left to a window. */
static bool sender_comes_again(Sender *sender, Range range) {
    SendState *state = &sender->state;

    if (range.since_ns >= state->high_ns || !range_list_meets(&state->unsent, range))
        return false;
    send_state_begin_anew(state, range);
    if (sender_is_under_way(sender, range))
        sender->again = sender->again.until_ns == 0
                            ? range
                            : (Range){MIN(sender->again.since_ns, range.since_ns),
                                      MAX(sender->again.until_ns, range.until_ns)};
    return true;
}

void sender_offer(Sender *sender, Interval *interval) {
    SendState *state = &sender->state;
    Range range = {interval->since_ns, interval->until_ns};
    uint64_t now_ns = clock_ns(CLOCK_REALTIME);
    bool is_first = state->live_ns == 0, has_gap = !is_first && range.since_ns > state->live_ns;
    bool has_share;
    uint64_t gap_ns;
    Delivery **slot = sender_free_live(sender);

    if (range.since_ns >= range.until_ns)
        return;
    /* Its begin was sent with another length of the interval, so its rest becomes a window. */
    if (range.since_ns < state->live_ns && state->live_ns < range.until_ns) {
        range.since_ns = state->live_ns;
        slot = NULL;
    }
    if (sender_comes_again(sender, range))
        slot = NULL;
    gap_ns = sender_gap_since(sender, range.since_ns);
    if (has_gap)
        sender_add_gap(sender, (Range){gap_ns, range.since_ns}, interval, now_ns);
    sender_move(sender, range.since_ns, range.until_ns);
    has_share = backlog_has_share(&sender->rules, range.since_ns);
    if (!has_share) {
        sender->newest_ns = MAX(sender->newest_ns, range.until_ns);
        slot = NULL;
    }
    if (has_share || sender_continues_backlog(sender, range))
        backlog_add(state, range, MIN(now_ns, range.until_ns));
    else
        state->counters.thinned_intervals++;
    if (slot && sender_may_send_live(sender))
        sender_deliver(sender, interval, sender->spread_ns, slot);
    else
        slot = NULL;
    /* A delivery writes the state when it has arrived; until then the file still lists its
     * interval. */
    if (!slot || is_first || has_gap || sender->is_dirty)
        sender_save(sender);
    sender_wake(sender);
}
