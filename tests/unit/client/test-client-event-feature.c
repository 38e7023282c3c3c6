/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/event-feature.h"

#include "make-record.h"
#include "test.h"

/* Features that count events by index, read back by the environment that knows their format. */

/* Leader and number of members, a pair a group. */
static void make_groups(Make *m, const uint32_t (*groups)[2], size_t n) {
    u32(m, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        u32(m, 64);
        text(m, "{anon_group}", 64);
        u32(m, groups[i][0]);
        u32(m, groups[i][1]);
    }
}

static int remake(PdEnvironment **env, const uint32_t (*groups)[2], size_t n,
                  const uint32_t *new_index, size_t n_events) {
    _cleanup_(make_done) Make m = {};
    int r = *env ? 0 : pd_environment_new(env);

    make_groups(&m, groups, n);
    return r < 0 ? r : group_desc_add(*env, buffer_bytes(&m.body), false, new_index, n_events);
}

TEST(groups_follow_their_events) {
    static const uint32_t groups[][2] = {{0, 2}, {3, 3}};
    static const uint32_t index[] = {UINT32_MAX, 0, 1, 2, UINT32_MAX, 3};
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;

    CHECK_OK(remake(&env, groups, 2, index, 6));
    CHECK_EQ(env->n_groups, 1U);
    CHECK_EQ(env->groups[0].leader, 2U);
    CHECK_EQ(env->groups[0].n_members, 2U);
    CHECK_STREQ(env->groups[0].name, "{anon_group}");
}

TEST(groups_of_several_recordings_are_joined_in_order) {
    static const uint32_t groups[][2] = {{0, 2}};
    static const uint32_t later[] = {4, 5}, earlier[] = {0, 1};
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;

    CHECK_OK(remake(&env, groups, 1, later, 2));
    CHECK_OK(remake(&env, groups, 1, earlier, 2));
    CHECK_OK(remake(&env, groups, 1, earlier, 2));
    CHECK_EQ(env->n_groups, 2U);
    CHECK_EQ(env->groups[0].leader, 0U);
    CHECK_EQ(env->groups[1].leader, 4U);
}

TEST(a_group_with_events_that_are_not_adjacent_is_dropped) {
    static const uint32_t groups[][2] = {{0, 2}};
    static const uint32_t apart[] = {0, 2};
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;

    CHECK_OK(remake(&env, groups, 1, apart, 2));
    CHECK_EQ(env->n_groups, 0U);
    CHECK(!env->has[PD_FEATURE_GROUP_DESC]);
}

TEST(groups_beyond_the_events_are_ignored) {
    static const uint32_t groups[][2] = {{0, UINT32_MAX}, {1, UINT32_MAX}, {UINT32_MAX, 5}};
    static const uint32_t index[] = {0, 1, 2};
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;

    CHECK_OK(remake(&env, groups, 3, index, 3));
    CHECK_EQ(env->n_groups, 1U);
    CHECK_EQ(env->groups[0].n_members, 3U);
}

TEST(truncated_groups_are_refused) {
    static const uint32_t index[] = {0, 1};
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(make_done) Make m = {};

    make_groups(&m, (const uint32_t[][2]){{0, 2}}, 1);
    CHECK_OK(pd_environment_new(&env));
    CHECK_EQ(
        group_desc_add(env, (Bytes){.data = m.body.data, .size = m.body.size - 4}, false, index, 2),
        -EBADMSG);
}

TEST_MAIN()
