/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "loop/loop.h"

#include "test.h"

/* What ends a loop. */

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

TEST_MAIN()
