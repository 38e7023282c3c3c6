/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/plan/ring-plan.h"

#include "test.h"
#include "util/macro.h"
#include "util/text.h"

/* Rings on hosts that are made up. */

#define K 1024ULL
#define M (1024ULL * K)
#define G (1024ULL * M)

enum { CPUS_MAX = 256, EVENTS_MAX = 2 };

static unsigned numbers[CPUS_MAX];

static CpuList first_cpus(size_t n) {
    for (unsigned i = 0; i < n; i++)
        numbers[i] = i;
    return (CpuList){.cpus = numbers, .n = n};
}

static PlanEvent clock_at(uint64_t hz, uint32_t stack_bytes, bool is_unwound) {
    return (PlanEvent){.attr = {.flags = hz > 0 ? PD_ATTR_FREQ : 0,
                                .sample_period = hz > 0 ? hz : 1,
                                .sample_type = stack_bytes > 0 ? PD_SAMPLE_STACK_USER : 0,
                                .sample_stack_user = stack_bytes},
                       .is_unwound = is_unwound,
                       .leader = PLAN_NO_LEADER};
}

static RingPlan plan_rings(PlanEvent *event, size_t n_cpus, uint64_t left) {
    CpuList cpus = first_cpus(n_cpus);
    Plan plan = {.events = event, .n = 1};

    return ring_plan(&plan,
                     &(RingRoom){.cpus = &cpus, .buffer_bytes = 512 * K, .left_bytes = left});
}

TEST(rings_with_stacks_hold_two_seconds_on_hosts_of_any_size) {
    /* clang-format off */
    static const struct { size_t n_cpus; uint64_t budget, hz; uint32_t stack; uint64_t ring; } rows[] = {
        { 1,   16 * M,   99,  16 * K, 8 * M  }, /* 512 MB */
        { 2,   16 * M,   99,  16 * K, 4 * M  }, /* 2 GB */
        { 8,   64 * M,   99,  16 * K, 4 * M  }, /* 16 GB */
        { 64,  256 * M,  99,  8 * K,  2 * M  }, /* 64 GB */
        { 256, 1 * G,    99,  8 * K,  2 * M  }, /* 256 GB */
        { 64,  512 * M,  99,  16 * K, 4 * M  },
        { 2,   94 * M,   999, 16 * K, 32 * M },
        { 4,   64 * M,   499, 4 * K,  8 * M  },
        { 1,   16 * M,   499, 4 * K,  8 * M  },
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        PlanEvent event = clock_at(rows[i].hz, 16 * K, true);
        RingPlan rings = plan_rings(&event, rows[i].n_cpus, rows[i].budget);

        printf("# %zu CPUs: stacks of %u, rings of %llu hold %llu ms\n", rows[i].n_cpus,
               event.attr.sample_stack_user, (unsigned long long)rings.bytes,
               (unsigned long long)rings.span_ms);
        CHECK_EQ(event.attr.sample_stack_user, rows[i].stack);
        CHECK_EQ(rings.bytes, rows[i].ring);
        CHECK(rings.span_ms >= 2000 && !rings.is_small);
        CHECK(rings.bytes * rows[i].n_cpus <= rows[i].budget);
    }
}

TEST(rings_that_are_too_small_for_4k_of_stack_are_reported) {
    PlanEvent event = clock_at(999, 16 * K, true);
    RingPlan rings = plan_rings(&event, 64, 64 * M);

    CHECK_EQ(event.attr.sample_stack_user, 4 * K);
    CHECK(rings.is_small && rings.span_ms < 2000);
}

TEST(what_auto_chose_becomes_frame_pointers_where_stacks_do_not_fit) {
    /* clang-format off */
    static const struct { size_t n_cpus; uint64_t budget, hz; bool stays; CallGraphReason reason; } rows[] = {
        { 1,   16 * M,   99,    true,  CALL_GRAPH_CAN_UNWIND  },
        { 256, 1 * G,    99,    true,  CALL_GRAPH_CAN_UNWIND  },
        { 256, 64 * G,   390,   true,  CALL_GRAPH_CAN_UNWIND  },
        { 256, 64 * G,   391,   false, CALL_GRAPH_HIGH_RATE   },
        { 64,  64 * M,   99,    false, CALL_GRAPH_SMALL_RINGS },
        { 2,   16 * M,   4999,  false, CALL_GRAPH_SMALL_RINGS },
        { 2,   64 * K,   99,    false, CALL_GRAPH_SMALL_RINGS },
        { 2,   64 * G,   50001, false, CALL_GRAPH_HIGH_RATE   },
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        PlanEvent event = clock_at(rows[i].hz, 16 * K, true);
        CpuList cpus = first_cpus(rows[i].n_cpus);
        Plan plan = {.events = &event, .n = 1};
        RingPlan rings;

        event.may_unwind = true;
        plan_settle_call_graph(&plan, CALL_GRAPH_AUTO);
        CHECK_EQ(plan.call_graph_reason, CALL_GRAPH_CAN_UNWIND);
        rings = ring_plan(
            &plan,
            &(RingRoom){.cpus = &cpus, .buffer_bytes = 512 * K, .left_bytes = rows[i].budget});
        CHECK_EQ(plan_unwinds(&plan), rows[i].stays);
        CHECK_EQ(plan.call_graph_reason, rows[i].reason);
        CHECK_EQ(plan_stack_bytes(&plan) > 0, rows[i].stays);
        CHECK(rows[i].stays || rows[i].budget < 64 * M ||
              rings.bytes == (rows[i].hz == 99    ? 512 * K
                              : rows[i].hz == 391 ? 1 * M
                                                  : 2 * M));
    }
}

static void check_call_graph(const Plan *plan, const char *mode, const char *reason) {
    _cleanup_(buffer_done) Buffer text = {};

    plan_put_call_graph(plan, &text);
    text_puts(&text, "; ");
    plan_put_call_graph_reason(plan, &text);
    text_putc(&text, '\0');
    printf("# %s\n", (const char *)text.data);
    CHECK_EQ(strncmp((const char *)text.data, mode, strlen(mode)), 0);
    CHECK(strstr((const char *)text.data, reason));
}

TEST(reason_of_a_call_graph_is_a_sentence) {
    PlanEvent event = clock_at(99, 16 * K, true);
    Plan plan = {.events = &event, .n = 1};

    event.attr.sample_type |= PD_SAMPLE_CALLCHAIN;
    plan_settle_call_graph(&plan, CALL_GRAPH_UNWIND);
    check_call_graph(&plan, "unwind:16384; ", "CallGraph= asks for it");
    CHECK(plan_halve_stacks(&plan));
    check_call_graph(&plan, "unwind:8192; ", "CallGraph= asks for it, with 8K of each");
    event.attr.sample_stack_user = 9000;
    plan_settle_call_graph(&plan, CALL_GRAPH_UNWIND);
    CHECK(plan_halve_stacks(&plan));
    check_call_graph(&plan, "unwind:4504; ", "CallGraph= asks for it, with 4504 bytes of each");
    event.attr.sample_stack_user = 4 * K;
    plan_settle_call_graph(&plan, CALL_GRAPH_UNWIND);
    check_call_graph(&plan, "unwind:4096; ", "CallGraph= asks for it");
    CHECK(!plan_halve_stacks(&plan));
    event.attr.sample_stack_user = 16 * K;
    event.may_unwind = true;
    plan_settle_call_graph(&plan, CALL_GRAPH_AUTO);
    check_call_graph(&plan, "unwind:16384; ", "This host can unwind stacks while it records");
    CHECK(plan_halve_stacks(&plan));
    check_call_graph(&plan, "unwind:8192; ", "with 8K of each");
    plan_use_frame_pointers(&plan, CALL_GRAPH_HIGH_RATE);
    check_call_graph(&plan, "fp; ", "more than 100,000 samples a second");
    event.attr.sample_type |= PD_SAMPLE_STACK_USER;
    event.attr.sample_stack_user = 4096;
    event.is_unwound = true;
    check_call_graph(&plan, "unwind:4096; ", "The recorder before this one chose it");
    event = clock_at(99, 8 * K, false);
    plan_settle_call_graph(&plan, CALL_GRAPH_AUTO);
    check_call_graph(&plan, "dwarf:8192; ", "None of its events");
}

/* An event with stacks of its own says nothing of those that are unwound beside it. */
TEST(call_graph_of_a_plan_is_that_of_the_events_that_are_unwound) {
    PlanEvent events[EVENTS_MAX] = {clock_at(99, 8 * K, true), clock_at(99, 16 * K, false)};
    Plan plan = {.events = events, .n = 2};

    plan_settle_call_graph(&plan, CALL_GRAPH_UNWIND);
    check_call_graph(&plan, "unwind:8192; ", "CallGraph= asks for it");
    CHECK_EQ(plan_call_graph(&plan), CALL_GRAPH_UNWIND);
    events[0].is_unwound = false;
    CHECK_EQ(plan_call_graph(&plan), CALL_GRAPH_DWARF);
    check_call_graph(&plan, "dwarf:16384; ", "");
    plan.n = 0;
    CHECK_EQ(plan_call_graph(&plan), CALL_GRAPH_NONE);
}

TEST(events_without_a_rate_are_not_unwound_by_choice) {
    PlanEvent events[EVENTS_MAX] = {clock_at(0, 16 * K, true), clock_at(99, 16 * K, true)};
    Plan plan = {.events = events, .n = 1};

    events[0].may_unwind = events[1].may_unwind = true;
    plan_settle_call_graph(&plan, CALL_GRAPH_AUTO);
    CHECK_EQ(plan.call_graph_reason, CALL_GRAPH_UNKNOWN_RATE);
    CHECK(!plan_unwinds(&plan));
    events[0] = clock_at(0, 16 * K, true);
    events[0].may_unwind = true;
    plan.n = 2;
    plan_settle_call_graph(&plan, CALL_GRAPH_AUTO);
    CHECK_EQ(plan.call_graph_reason, CALL_GRAPH_CAN_UNWIND);
    CHECK(!events[0].is_unwound && events[1].is_unwound);
}

TEST(sessions_with_stacks_leave_memory_to_others) {
    uint64_t left = 16 * M, before = UINT64_MAX;

    for (unsigned i = 0; i < 5; i++) {
        PlanEvent event = clock_at(99, 16 * K, true);
        RingPlan rings = plan_rings(&event, 2, left);

        CHECK(rings.bytes <= before && 2 * rings.bytes <= left);
        before = rings.bytes;
        left -= 2 * rings.bytes;
        if (i < 3)
            CHECK(!rings.is_small && left >= 2 * 512 * K);
    }
}

TEST(a_session_without_stacks_may_use_all_buffers_that_are_left) {
    PlanEvent event = clock_at(99, 0, false);

    CHECK_EQ(plan_rings(&event, 2, 1 * M).bytes, 512 * K);
    CHECK(!plan_rings(&event, 2, 1 * M).is_small);
    CHECK(plan_rings(&event, 2, 512 * K).is_small);
    CHECK_EQ(plan_rings(&event, 2, 1 * G).bytes, 512 * K);
}

TEST(rings_of_fast_sessions_grow_unless_they_were_to_be_small_or_others_need_the_memory) {
    /* clang-format off */
    static const struct { uint64_t hz, buffer, budget; size_t n_cpus; uint64_t ring; } rows[] = {
        { 99,   512 * K, 1 * G,   2,  512 * K },
        { 499,  512 * K, 1 * G,   2,  1 * M   },
        { 999,  512 * K, 1 * G,   2,  2 * M   },
        { 9999, 512 * K, 1 * G,   2,  2 * M   },
        { 999,  512 * K, 16 * M,  4,  2 * M   },
        { 999,  512 * K, 16 * M,  16, 512 * K },
        { 999,  512 * K, 4 * M,   2,  1 * M   },
        { 999,  512 * K, 1 * M,   2,  512 * K },
        { 999,  4 * M,   1 * G,   2,  4 * M   },
        { 999,  64 * K,  1 * G,   2,  64 * K  },
        { 0,    512 * K, 1 * G,   2,  512 * K },
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        PlanEvent event = clock_at(rows[i].hz, 0, false);
        CpuList cpus = first_cpus(rows[i].n_cpus);
        Plan plan = {.events = &event, .n = 1};
        RingPlan rings = ring_plan(&plan, &(RingRoom){.cpus = &cpus,
                                                      .buffer_bytes = rows[i].buffer,
                                                      .left_bytes = rows[i].budget});

        CHECK_EQ(rings.bytes, rows[i].ring);
        CHECK(!rings.is_small);
    }
}

TEST(stored_stacks_keep_their_size_and_rings_grow) {
    PlanEvent event = clock_at(99, 16 * K, false);
    RingPlan rings = plan_rings(&event, 2, 94 * M);

    CHECK_EQ(event.attr.sample_stack_user, 16 * K);
    CHECK(rings.bytes == 8 * M && !rings.is_small);
    rings = plan_rings(&event, 64, 64 * M);
    CHECK_EQ(event.attr.sample_stack_user, 16 * K);
    CHECK(rings.is_small);
}

TEST(rates_of_events_that_share_a_ring_add_up) {
    unsigned second[] = {1};
    CpuList cpus = first_cpus(2);
    PlanEvent events[EVENTS_MAX] = {clock_at(99, 0, false), clock_at(99, 0, false)};
    Plan plan = {.events = events, .n = 2};
    RingRoom room = {.cpus = &cpus, .buffer_bytes = 512 * K, .left_bytes = 64 * M};

    CHECK_EQ(ring_plan(&plan, &room).bytes_per_sec, 2 * 99 * 250ULL);
    events[1].cpus = (CpuList){.cpus = second, .n = 1};
    CHECK_EQ(ring_plan(&plan, &room).bytes_per_sec, 2 * 99 * 250ULL);
    events[0].cpus = (CpuList){.cpus = numbers, .n = 1};
    CHECK_EQ(ring_plan(&plan, &room).bytes_per_sec, 99 * 250ULL);
}

TEST(stacks_of_events_without_a_rate_are_planned_for_99_hz) {
    PlanEvent event = clock_at(0, 16 * K, true);
    RingPlan rings = plan_rings(&event, 2, 94 * M);

    CHECK(rings.bytes == 8 * M && !rings.is_small);
    CHECK_EQ(event.attr.sample_stack_user, 16 * K);
}

TEST_MAIN()
