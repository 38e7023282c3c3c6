/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/backlog.h"

#include "test.h"
#include "util/macro.h"

/* Which windows of the past are sent, in which order, and which never. */

#define SECOND UINT64_C(1000000000)
#define NOW    (UINT64_C(1764000000) * SECOND)

static const BacklogTime now = {.now_ns = NOW, .live_ns = UINT64_MAX};

static BacklogRules rules(void) {
    return (BacklogRules){.interval_ns = 10 * SECOND, .host = "web-1", .share_percent = 100};
}

static SendState *state_with(Range range) {
    SendState *state = calloc(1, sizeof(*state));

    if (!state)
        abort();
    range_list_add(&state->unsent, range);
    return state;
}

TEST(windows_end_where_intervals_end_and_the_oldest_is_first) {
    _cleanup_free_ SendState *state = state_with((Range){NOW - 25 * SECOND, NOW - 3 * SECOND});
    BacklogRules r = rules();
    Range range;

    CHECK(backlog_next(state, &r, 1, &now, &range));
    CHECK_EQ(range.since_ns, NOW - 25 * SECOND);
    CHECK_EQ(range.until_ns, NOW - 20 * SECOND);
    send_state_settle(state, range);
    CHECK(backlog_next(state, &r, 1, &now, &range));
    CHECK_EQ(range.until_ns, NOW - 10 * SECOND);
    send_state_settle(state, range);
    CHECK(backlog_next(state, &r, 1, &now, &range));
    CHECK_EQ(range.until_ns, NOW - 3 * SECOND);
    send_state_settle(state, range);
    CHECK(!backlog_next(state, &r, 1, &now, &range));
}

TEST(live_interval_that_is_on_its_way_does_not_expire) {
    const BacklogTime live = {.now_ns = NOW + 2 * SECOND, .live_ns = NOW - 10 * SECOND};
    _cleanup_free_ SendState *state = state_with((Range){NOW - 30 * SECOND, NOW});
    BacklogRules r = rules();
    Range range;

    r.max_age_ns = 20 * SECOND;
    CHECK(backlog_next(state, &r, 1, &live, &range));
    CHECK_EQ(state->counters.expired_ns, 20 * SECOND);
    CHECK_EQ(range.since_ns, NOW - 10 * SECOND);
    CHECK(!backlog_next(state, &r, 1, &now, &range));
    CHECK_EQ(state->counters.expired_ns, 30 * SECOND);
}

TEST(what_is_still_to_come_is_not_read) {
    const BacklogTime early = {.now_ns = NOW + 4 * SECOND, .live_ns = UINT64_MAX};
    const BacklogTime late = {.now_ns = NOW + 14 * SECOND, .live_ns = UINT64_MAX};
    _cleanup_free_ SendState *state = state_with((Range){NOW - 20 * SECOND, NOW + 3600 * SECOND});
    BacklogRules r = rules();
    Range range;

    CHECK(backlog_next(state, &r, 6, &early, &range));
    CHECK_EQ(range.since_ns, NOW - 20 * SECOND);
    CHECK_EQ(range.until_ns, NOW);
    send_state_settle(state, range);
    CHECK(!backlog_next(state, &r, 6, &early, &range));
    CHECK_EQ(range_list_total(&state->unsent), 3600 * SECOND);
    /* Nothing but a window takes it away. */
    CHECK(backlog_next(state, &r, 6, &late, &range));
    CHECK_EQ(range.since_ns, NOW);
    CHECK_EQ(range.until_ns, NOW + 10 * SECOND);
}

/* An interval that was sent in part before the clock was set back. */
TEST(rest_of_an_interval_that_is_still_to_come_waits_and_holds_up_nothing) {
    _cleanup_free_ SendState *state = state_with((Range){NOW - 20 * SECOND, NOW + 60 * SECOND});
    const BacklogTime late = {.now_ns = NOW + 60 * SECOND, .live_ns = UINT64_MAX};
    BacklogRules r = rules();
    Range range;

    send_state_put_partial(state,
                           &(SendPartial){.range = {NOW + 40 * SECOND, NOW + 50 * SECOND}, .n = 2});
    send_state_put_partial(state, &(SendPartial){.range = {NOW - 10 * SECOND, NOW}, .n = 2});
    CHECK(backlog_next(state, &r, 1, &now, &range));
    CHECK_EQ(range.since_ns, NOW - 10 * SECOND);
    send_state_settle(state, range);
    CHECK(backlog_next(state, &r, 1, &now, &range));
    CHECK_EQ(range.since_ns, NOW - 20 * SECOND);
    send_state_settle(state, range);
    CHECK(!backlog_next(state, &r, 1, &now, &range));
    CHECK_EQ(state->n_partials, 1);
    CHECK(backlog_next(state, &r, 1, &late, &range));
    CHECK_EQ(range.since_ns, NOW + 40 * SECOND);
    CHECK_EQ(range.until_ns, NOW + 50 * SECOND);
}

TEST(merged_windows_do_not_bridge_what_was_sent) {
    _cleanup_free_ SendState *state = state_with((Range){NOW - 100 * SECOND, NOW - 60 * SECOND});
    BacklogRules r = rules();
    Range range;

    CHECK(backlog_next(state, &r, 2, &now, &range));
    CHECK_EQ(range.until_ns, NOW - 80 * SECOND);
    CHECK(backlog_next(state, &r, 6, &now, &range));
    CHECK_EQ(range.until_ns, NOW - 60 * SECOND);
}

TEST(old_intervals_expire_before_the_engine_refuses_them) {
    _cleanup_free_ SendState *state = state_with((Range){NOW - 7200 * SECOND, NOW});
    BacklogRules r = rules();
    Range range;

    r.max_age_ns = 3600 * SECOND;
    CHECK(backlog_next(state, &r, 1, &now, &range));
    CHECK(range.since_ns >= NOW - 3600 * SECOND && range.since_ns <= NOW - 3570 * SECOND);
    CHECK_EQ(state->counters.expired_ns, range.since_ns - (NOW - 7200 * SECOND));
    r.max_age_ns = SECOND;
    CHECK(!backlog_next(state, &r, 1, &now, &range) || range.since_ns > NOW - 20 * SECOND);
}

TEST(rest_of_an_interval_comes_first_with_the_same_ends) {
    _cleanup_free_ SendState *state = state_with((Range){NOW - 100 * SECOND, NOW});
    BacklogRules r = rules();
    Range range;

    send_state_put_partial(state,
                           &(SendPartial){.range = {NOW - 40 * SECOND, NOW - 20 * SECOND}, .n = 2});
    CHECK(backlog_next(state, &r, 1, &now, &range));
    CHECK_EQ(range.since_ns, NOW - 40 * SECOND);
    CHECK_EQ(range.until_ns, NOW - 20 * SECOND);
    send_state_settle(state, range);
    CHECK(backlog_next(state, &r, 1, &now, &range));
    CHECK_EQ(range.since_ns, NOW - 100 * SECOND);
}

TEST(share_chooses_whole_intervals_by_host_and_time) {
    BacklogRules a = rules(), b = rules();
    unsigned both = 0, of_a = 0, of_b = 0;

    a.share_percent = b.share_percent = 25;
    b.host = "web-2";
    for (uint64_t i = 0; i < 10000; i++) {
        uint64_t since = NOW + i * 10 * SECOND;
        bool in_a = backlog_has_share(&a, since), in_b = backlog_has_share(&b, since);

        CHECK_EQ(in_a, backlog_has_share(&a, since + 9 * SECOND));
        of_a += in_a;
        of_b += in_b;
        both += in_a && in_b;
    }
    CHECK(of_a > 2300 && of_a < 2700);
    CHECK(of_b > 2300 && of_b < 2700);
    /* Of two hosts a sixteenth coincides: they are chosen apart. */
    CHECK(both > 500 && both < 750);
}

TEST(intervals_beyond_the_share_leave_the_backlog_and_are_counted) {
    _cleanup_free_ SendState *state = state_with((Range){NOW - 10000 * SECOND, NOW});
    BacklogRules r = rules();
    unsigned n = 0;
    Range range;

    r.share_percent = 10;
    while (backlog_next(state, &r, 6, &now, &range)) {
        CHECK_EQ(range.until_ns - range.since_ns, 10 * SECOND);
        CHECK(backlog_has_share(&r, range.since_ns));
        send_state_settle(state, range);
        n++;
    }
    CHECK_EQ(state->counters.thinned_intervals + n, 1000);
    CHECK(n > 50 && n < 160);
}

TEST(intervals_beyond_the_share_are_thinned_and_not_too_old) {
    _cleanup_free_ SendState *state = state_with((Range){NOW - 10005 * SECOND, NOW});
    BacklogRules r = rules();
    unsigned n = 0;
    Range range;

    r.share_percent = 10;
    r.max_age_ns = 5000 * SECOND;
    while (backlog_next(state, &r, 1, &now, &range)) {
        send_state_settle(state, range);
        n++;
    }
    CHECK_EQ(n + state->counters.thinned_intervals +
                 (state->counters.expired_ns + 9 * SECOND) / (10 * SECOND),
             1001);
    CHECK(state->counters.expired_ns > 250 * SECOND && state->counters.expired_ns < 800 * SECOND);
}

TEST(clock_that_jumped_by_years_leaves_no_endless_backlog) {
    _cleanup_free_ SendState *state = calloc(1, sizeof(*state));

    backlog_add(state, (Range){5 * SECOND, NOW}, NOW);
    CHECK_EQ(range_list_total(&state->unsent), BACKLOG_REACH_NS);
    CHECK_EQ(state->counters.expired_ns, NOW - 5 * SECOND - BACKLOG_REACH_NS);
}

TEST_MAIN()
