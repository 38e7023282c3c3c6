/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer/encode.h"

#include "perfdata/feature/environment.h"
#include "test.h"

static int make_events(const uint32_t *leaders, size_t n, PdEvents **ret) {
    PdAttr attr = {.type = PD_TYPE_SOFTWARE, .sample_type = PD_SAMPLE_IP};
    int r = pd_events_new(ret);

    for (size_t i = 0; r == 0 && i < n; i++) {
        PdEvent *event;

        r = pd_events_add(*ret, &attr, (Bytes){}, NULL, 0, &event);
        if (r == 0)
            event->leader = leaders[i];
    }
    return r;
}

TEST(groups_are_read_back_as_written) {
    static const uint32_t leaders[] = {0, 1, 1, 1, 4, 5, 5};

    for (unsigned swap = 0; swap < 2; swap++) {
        _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
        _cleanup_(pd_events_freep) PdEvents *events = NULL;
        _cleanup_(buffer_done) Buffer body = {};

        CHECK_OK(make_events(leaders, ARRAY_SIZE(leaders), &events));
        pd_encode_group_desc(&body, events, swap);
        CHECK_OK(pd_environment_new(&env));
        CHECK_OK(pd_environment_read(env, PD_FEATURE_GROUP_DESC, buffer_bytes(&body), swap));
        CHECK_EQ(env->n_groups, 2);
        CHECK_STREQ(env->groups[0].name, "{anon_group}");
        CHECK_EQ(env->groups[0].leader, 1);
        CHECK_EQ(env->groups[0].n_members, 3);
        CHECK_EQ(env->groups[1].leader, 5);
        CHECK_EQ(env->groups[1].n_members, 2);
    }
}

TEST(events_without_groups_produce_no_group_feature) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    _cleanup_(buffer_done) Buffer body = {};
    static const uint32_t leaders[] = {0, 1};

    CHECK_OK(make_events(leaders, ARRAY_SIZE(leaders), &events));
    pd_encode_group_desc(&body, events, false);
    CHECK_EQ(body.size, 0);
}

TEST(event_leads_itself_by_default) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    PdAttr attr = {.type = PD_TYPE_SOFTWARE};
    PdEvent *event = NULL;

    CHECK_OK(pd_events_new(&events));
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_OK(pd_events_add(events, &attr, (Bytes){}, NULL, 0, &event));
        CHECK_EQ(event->leader, i);
    }
}

TEST_MAIN()
