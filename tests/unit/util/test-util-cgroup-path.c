/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/cgroup-path.h"

#include "test.h"

/* Paths of control groups, and the ways in which users name them. */

static Bytes text(const char *s) {
    return (Bytes){.data = (const uint8_t *)s, .size = strlen(s)};
}

static bool path(const char *of, const char *pattern) {
    return cgroup_path_matches(text(of), pattern);
}

static bool unit(const char *of, const char *name) {
    return cgroup_unit_matches(text(of), name);
}

#define SHOP "/payload/system.slice/shop.service"

TEST(a_path_matches_the_group_and_its_children_with_or_without_the_first_slash) {
    CHECK(path(SHOP, "/payload/system.slice/shop.service"));
    CHECK(path(SHOP, "payload/system.slice/shop.service/"));
    CHECK(path(SHOP, "payload"));
    CHECK(path("a/b", "/a"));
    CHECK(path(SHOP "/worker", SHOP));
    CHECK(path(SHOP, "/"));
    CHECK(path("/", "/"));
    CHECK(!path(SHOP, "/payload/system.slice/shop"));
    CHECK(!path(SHOP, "shop.service"));
    CHECK(!path("/", "a"));
}

TEST(globs_match_within_one_part_of_a_path) {
    CHECK(path(SHOP, "/payload/*/shop.service"));
    CHECK(path(SHOP "/worker", "/payload/*/shop.*"));
    CHECK(path(SHOP, "pay*"));
    CHECK(!path(SHOP, "/pay*/shop.service"));
    CHECK(!path(SHOP, "/*/*/*/*"));
    CHECK(path("/odd[name]/x", "/odd[name]"));
}

TEST(a_unit_is_found_wherever_it_is_in_the_tree) {
    CHECK(unit(SHOP, "shop.service"));
    CHECK(unit(SHOP, "shop"));
    CHECK(unit(SHOP "/worker", "shop"));
    CHECK(unit(SHOP, "system.slice"));
    CHECK(unit(SHOP, "sh*"));
    CHECK(unit(SHOP, "sh?p.service"));
    CHECK(!unit(SHOP, "sho"));
    CHECK(!unit(SHOP, "shop.slice"));
    CHECK(!unit(SHOP, "payload"));
    CHECK(!unit(SHOP, ""));
    CHECK(!unit(SHOP, "s*p"));
    CHECK(unit("/system.slice/web@1.service", "web@*"));
}

TEST(names_that_systemd_escapes_match_as_they_are_written) {
    CHECK(unit("/system.slice/my\\x2dapp.service", "my\\x2dapp"));
    CHECK(unit("/system.slice/my\\x2dapp.service", "my\\x2d*"));
    CHECK(unit("/system.slice/_cpu.service", "cpu.service"));
    CHECK(unit("/system.slice/_cpu.service", "cpu"));
}

TEST(a_path_of_any_bytes_and_length_is_matched) {
    char longest[10000];

    memset(longest, 'a', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    CHECK(!unit(longest, "a*"));
    CHECK(!path(longest, "b*"));
    CHECK(!cgroup_unit_matches((Bytes){.data = (const uint8_t *)"a\0b", .size = 3}, "a*"));
    CHECK(!cgroup_path_matches((Bytes){.data = (const uint8_t *)"a\0b", .size = 3}, "a*"));
}

static const char *nearest(const char *of, const char *wanted, bool is_unit) {
    static NearNames near;

    near = (NearNames){};
    cgroup_path_offer(&near, text(of), wanted, is_unit);
    return near.n > 0 ? near.names[0].name : "";
}

TEST(a_suggestion_uses_a_spelling_that_is_accepted) {
    CHECK_STREQ(nearest(SHOP "/worker", "shop.service", false), SHOP);
    CHECK_STREQ(nearest(SHOP, "system.slice/shop.service", false), SHOP);
    CHECK_STREQ(nearest(SHOP, "shop", false), SHOP);
    CHECK_STREQ(nearest(SHOP, "shpo.service", true), "shop.service");
    CHECK_STREQ(nearest(SHOP, "shpo", true), "shop.service");
    CHECK_STREQ(nearest("/docker/docker-4f5a66.scope", "4f5a66", false),
                "/docker/docker-4f5a66.scope");
    CHECK_STREQ(nearest(SHOP, "nothing-like-it", false), "");
    CHECK_STREQ(nearest("/", "/", false), "");
}

TEST_MAIN()
