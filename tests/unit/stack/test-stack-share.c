/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stack/stack-share.h"

#include "test.h"

/* When a session is said to have short stacks. */

#define MINUTE 60000000000ULL

TEST(stacks_are_short_when_fewer_than_four_fifths_are_whole) {
    StackShare share = {};

    stack_share_add(&share, MINUTE, 800, 1000);
    CHECK(!stack_share_is_short(&share, 2 * MINUTE));
    stack_share_add(&share, MINUTE, 0, 1);
    CHECK(stack_share_is_short(&share, 2 * MINUTE));
}

TEST(a_few_truncated_stacks_are_no_problem) {
    StackShare share = {};

    stack_share_add(&share, MINUTE, 0, STACK_SHARE_LEAST - 1);
    CHECK(!stack_share_is_short(&share, 2 * MINUTE));
}

TEST(a_minute_counts_when_it_has_ended) {
    StackShare share = {};

    stack_share_add(&share, 100 * MINUTE, 0, 2000);
    CHECK(!stack_share_is_short(&share, 101 * MINUTE - 1));
    CHECK(stack_share_is_short(&share, 101 * MINUTE));
}

TEST(only_the_last_ten_minutes_count) {
    StackShare share = {};

    stack_share_add(&share, 100 * MINUTE, 0, 2000);
    CHECK(stack_share_is_short(&share, 110 * MINUTE));
    CHECK(!stack_share_is_short(&share, 111 * MINUTE));
    for (unsigned i = 101; i <= 111; i++)
        stack_share_add(&share, i * MINUTE, 2000, 2000);
    CHECK(!stack_share_is_short(&share, 111 * MINUTE));
}

TEST_MAIN()
