/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "loop/loop.h"

#include <event2/event.h>
#include <string.h>
#include <sys/time.h>

#include "test.h"

/* What ends a loop, and when its timers are due. */

static int fail_once(void *userdata) {
    ++*(int *)userdata;
    return -ENODATA;
}

static int free_and_fail(void *userdata) {
    LoopSource **source = userdata;

    *source = loop_source_free(*source);
    return -EBADMSG;
}

static int stop(void *userdata) {
    loop_stop(userdata);
    return 0;
}

TEST(a_callback_that_fails_ends_the_loop_and_is_named) {
    _cleanup_(loop_freep) Loop *loop = NULL;
    LoopSource *source, *stopper;
    int n = 0;

    CHECK_OK(loop_new(&loop));
    CHECK_OK(loop_add_deferred(loop, fail_once, &n, &source));
    CHECK_OK(loop_add_deferred(loop, stop, loop, &stopper));
    CHECK_OK(loop_trigger(source));
    CHECK_EQ(loop_run(loop), -ENODATA);
    CHECK_EQ(n, 1);
    CHECK_STREQ(loop_failed_in(loop), "fail_once");
    /* A later run that ends well has no such name. */
    CHECK_OK(loop_trigger(stopper));
    CHECK_OK(loop_run(loop));
    CHECK_STREQ(loop_failed_in(loop), "the loop");
}

TEST(a_callback_that_removes_its_own_source_is_named_too) {
    _cleanup_(loop_freep) Loop *loop = NULL;
    LoopSource *source;

    CHECK_OK(loop_new(&loop));
    CHECK_OK(loop_add_timer(loop, 1000000, free_and_fail, &source, &source));
    CHECK_EQ(loop_run(loop), -EBADMSG);
    CHECK_STREQ(loop_failed_in(loop), "free_and_fail");
}

enum { OFFSET_US = 70000, PERIOD_US = 400000, ENOUGH = 6 };

/* When each of two timers was called last, by the clock of the loop, which stands still from one
 * wake-up to the next. */
typedef struct Meeting {
    Loop *loop;
    struct timeval often, rarely;
    int calls, together;
} Meeting;

static int meet(Meeting *m, struct timeval *mine, const struct timeval *other) {
    event_base_gettimeofday_cached(loop_base(m->loop), mine);
    m->together += memcmp(mine, other, sizeof(*mine)) == 0;
    return 0;
}

static int call_often(void *userdata) {
    Meeting *m = userdata;

    return meet(m, &m->often, &m->rarely);
}

static int call_rarely(void *userdata) {
    Meeting *m = userdata;

    if (++m->calls == ENOUGH)
        loop_stop(m->loop);
    return meet(m, &m->rarely, &m->often);
}

TEST(timers_that_began_at_different_times_are_due_together) {
    _cleanup_(loop_freep) Loop *loop = NULL;
    Meeting m = {};

    CHECK_OK(loop_new(&loop));
    m.loop = loop;
    CHECK_OK(loop_add_timer(loop, PERIOD_US / 2 * 1000ULL, call_often, &m, NULL));
    usleep(OFFSET_US);
    CHECK_OK(loop_add_timer(loop, PERIOD_US * 1000ULL, call_rarely, &m, NULL));
    CHECK_OK(loop_run(loop));
    CHECK_EQ(m.calls, ENOUGH);
    /* A busy machine may be late for some. */
    CHECK(m.together >= ENOUGH / 2);
}

TEST(a_timer_with_another_period_is_due_by_that) {
    _cleanup_(loop_freep) Loop *loop = NULL;
    LoopSource *timer;

    CHECK_OK(loop_new(&loop));
    CHECK_OK(loop_add_timer(loop, 3600000000000ULL, stop, loop, &timer));
    CHECK_OK(loop_set_period(timer, 1000000));
    CHECK_OK(loop_run(loop));
}

TEST_MAIN()
