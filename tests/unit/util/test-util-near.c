/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/near.h"

#include "test.h"

/* Typos and the names they were meant for. */

TEST(a_name_is_found_despite_two_typos) {
    CHECK_EQ(near_distance("nginx", "nginx"), 0U);
    CHECK_EQ(near_distance("ngnix", "nginx"), 1U);
    CHECK_EQ(near_distance("gninx", "nginx"), 1U);
    CHECK_EQ(near_distance("gnnix", "nginx"), 2U);
    CHECK_EQ(near_distance("NGINX", "nginx"), 0U);
    CHECK_EQ(near_distance("ngin", "nginx"), 1U);
    CHECK_EQ(near_distance("nginxes", "nginx"), 2U);
    CHECK_EQ(near_distance("apache", "nginx"), (unsigned)NEAR_FAR);
}

TEST(short_names_may_differ_by_one_letter_only) {
    CHECK_EQ(near_distance("sh", "ssh"), 1U);
    CHECK_EQ(near_distance("cat", "cut"), 1U);
    CHECK_EQ(near_distance("spni", "spin"), 1U);
    CHECK_EQ(near_distance("top", "cut"), (unsigned)NEAR_FAR);
    CHECK_EQ(near_distance("a", "b"), (unsigned)NEAR_FAR);
}

TEST(a_caller_may_allow_more_typos) {
    CHECK_EQ(near_distance("L1-dcache-laods", "L1-dcache-load-misses"), (unsigned)NEAR_FAR);
    CHECK_EQ(near_distance_within("L1-dcache-laods", "L1-dcache-load-misses", 7), 7U);
    CHECK_EQ(near_distance_within("L1-dcache-laods", "L1-dcache-load-misses", 6),
             (unsigned)NEAR_FAR);
    CHECK_EQ(near_distance_within("abc", "xyz", 3), (unsigned)NEAR_FAR);
}

TEST(names_of_any_length_are_compared_within_bounds) {
    char a[5000], b[5000];

    memset(a, 'x', sizeof(a));
    memset(b, 'x', sizeof(b));
    a[sizeof(a) - 1] = b[sizeof(b) - 2] = '\0';
    CHECK_EQ(near_distance(a, b), (unsigned)NEAR_FAR);
    CHECK_EQ(near_distance("", ""), (unsigned)NEAR_FAR);
}

TEST(the_nearest_names_are_kept_once_each) {
    NearNames near = {};
    char lengthy[NEAR_NAME_MAX + 1];

    near_offer(&near, "c", 3);
    near_offer(&near, "b", 2);
    near_offer(&near, "b", 2);
    near_offer(&near, "far", NEAR_FAR);
    CHECK_EQ(near.n, 2U);
    near_offer(&near, "a", 1);
    near_offer(&near, "d", 2);
    CHECK_EQ(near.n, 3U);
    CHECK_STREQ(near.names[0].name, "a");
    CHECK_STREQ(near.names[1].name, "b");
    CHECK_STREQ(near.names[2].name, "d");
    near_offer(&near, "e", 9);
    CHECK_STREQ(near.names[2].name, "d");
    memset(lengthy, 'x', sizeof(lengthy));
    lengthy[NEAR_NAME_MAX] = '\0';
    near_offer(&near, lengthy, 0);
    CHECK_STREQ(near.names[0].name, "a");
}

TEST_MAIN()
