/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/event/event-attr.h"

#include <linux/perf_event.h>
#include <time.h>

#include "make-event-host.h"
#include "test.h"

static char error[2048];

/* The attrs of a text, in memory of the caller. */
static int settle(const char *text, const EventPolicy *policy, PdAttr *ret, size_t n) {
    _cleanup_(event_list_freep) EventList *list = NULL;
    _cleanup_(made_host_done) MadeHost m = {};
    int r = made_host_init(&m);
    size_t bad;

    error[0] = '\0';
    if (r == 0)
        r = event_list_parse(text, &m.host, &list, error, sizeof(error));
    if (r < 0)
        return r;
    return list->n > n ? -E2BIG : event_attrs_settle(list, policy, ret, &bad, error, sizeof(error));
}

TEST(every_sample_has_the_fields_that_profd_needs) {
    EventPolicy policy = {.frequency_hz = 99, .watermark_bytes = 131072};
    uint64_t needed = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_IP | PD_SAMPLE_TID | PD_SAMPLE_TIME |
                      PD_SAMPLE_CPU | PD_SAMPLE_CGROUP;
    PdAttr a;

    CHECK_OK(settle("cycles", &policy, &a, 1));
    CHECK_EQ(a.sample_type, needed | PD_SAMPLE_PERIOD);
    CHECK_EQ(a.read_format, PD_FORMAT_ID | PD_FORMAT_LOST);
    CHECK_EQ(a.flags, PD_ATTR_DISABLED | PD_ATTR_FREQ | PD_ATTR_WATERMARK | PD_ATTR_SAMPLE_ID_ALL |
                          PD_ATTR_USE_CLOCKID | PD_ATTR_EXCLUDE_GUEST);
    CHECK_EQ(a.sample_period, 99);
    CHECK_EQ(a.wakeup_events, 131072);
    CHECK_EQ(a.clockid, CLOCK_MONOTONIC);
    CHECK_OK(settle("cycles/period=5/", &policy, &a, 1));
    CHECK_EQ(a.sample_type, needed);
}

TEST(an_attr_is_no_larger_than_its_last_field_that_is_set) {
    EventPolicy policy = {.frequency_hz = 99};
    PdAttr a;

    CHECK_OK(settle("cycles", &policy, &a, 1));
    CHECK_EQ(pd_attr_size_needed(&a), 96);
    CHECK_OK(settle("cycles/max-stack=9/", &policy, &a, 1));
    CHECK_EQ(pd_attr_size_needed(&a), 112);
    CHECK_OK(settle("cpu/config3=1/", &policy, &a, 1));
    CHECK_EQ(pd_attr_size_needed(&a), 136);
}

TEST(no_rate_is_above_the_limit_of_the_kernel) {
    EventPolicy policy = {.frequency_hz = 4000, .max_frequency_hz = 1000};
    PdAttr a;

    CHECK_OK(settle("cycles", &policy, &a, 1));
    CHECK_EQ(a.sample_period, 1000);
    CHECK_OK(settle("cycles/freq=20000/", &policy, &a, 1));
    CHECK_EQ(a.sample_period, 1000);
    CHECK_OK(settle("cycles/period=20000/", &policy, &a, 1));
    CHECK_EQ(a.sample_period, 20000);
}

TEST(only_clocks_exclude_the_idle_task) {
    EventPolicy policy = {.frequency_hz = 99, .exclude_idle = true};
    PdAttr attrs[4];

    CHECK_OK(settle("cpu-clock,task-clock:u,cycles,cs", &policy, attrs, 4));
    CHECK(attrs[0].flags & PD_ATTR_EXCLUDE_IDLE);
    CHECK(attrs[1].flags & PD_ATTR_EXCLUDE_IDLE);
    CHECK(!(attrs[2].flags & PD_ATTR_EXCLUDE_IDLE));
    CHECK(!(attrs[3].flags & PD_ATTR_EXCLUDE_IDLE));
}

TEST(an_event_that_would_count_nothing_is_refused) {
    EventPolicy policy = {.frequency_hz = 99, .exclude_kernel = true};
    PdAttr a;

    CHECK_OK(settle("cycles", &policy, &a, 1));
    CHECK_EQ(settle("cycles:k", &policy, &a, 1), -EINVAL);
    CHECK_STREQ(error,
                "Event 'cycles:k' would count nothing: its modifiers ask only for what the session "
                "leaves out");
    CHECK_OK(settle("cycles:h", &policy, &a, 1));
}

TEST(stacks_have_the_size_of_the_session_or_of_the_event) {
    EventPolicy policy = {
        .frequency_hz = 99, .call_graph = EVENT_CALL_GRAPH_DWARF, .stack_bytes = 4000};
    PdAttr a;

    CHECK_OK(settle("cycles", &policy, &a, 1));
    CHECK_EQ(a.sample_stack_user, 4000);
    CHECK(a.sample_regs_user != 0);
    CHECK(a.flags & PD_ATTR_EXCLUDE_CALLCHAIN_USER);
    CHECK_OK(settle("cycles/stack-size=512/", &policy, &a, 1));
    CHECK_EQ(a.sample_stack_user, 512);
    CHECK_OK(settle("cycles/call-graph=dwarf/", &policy, &a, 1));
    CHECK_EQ(a.sample_stack_user, EVENT_STACK_BYTES_USUAL);
    CHECK_OK(settle("cycles/call-graph=fp/", &policy, &a, 1));
    CHECK_EQ(a.sample_stack_user, 0);
    CHECK(!(a.flags & PD_ATTR_EXCLUDE_CALLCHAIN_USER));
    CHECK_OK(settle("ftrace:function", &policy, &a, 1));
    CHECK_EQ(a.sample_stack_user, 0);
    CHECK(a.sample_type & PD_SAMPLE_CALLCHAIN);
}

TEST(unwound_samples_of_a_low_rate_bring_the_chain_by_frame_pointers_too) {
    EventPolicy policy = {.frequency_hz = 99,
                          .call_graph = EVENT_CALL_GRAPH_UNWIND,
                          .stack_bytes = 16384,
                          .pointers_max_hz = 1000};
    PdAttr a;

    CHECK_OK(settle("cpu-clock", &policy, &a, 1));
    CHECK(a.sample_type & PD_SAMPLE_STACK_USER);
    CHECK(!(a.flags & PD_ATTR_EXCLUDE_CALLCHAIN_USER));
    CHECK_OK(settle("cpu-clock/freq=1001/", &policy, &a, 1));
    CHECK(a.flags & PD_ATTR_EXCLUDE_CALLCHAIN_USER);
    CHECK_OK(settle("cpu-clock/period=100/", &policy, &a, 1));
    CHECK(a.flags & PD_ATTR_EXCLUDE_CALLCHAIN_USER);
    CHECK_OK(settle("cpu-clock/call-graph=dwarf/", &policy, &a, 1));
    CHECK(a.flags & PD_ATTR_EXCLUDE_CALLCHAIN_USER);
    policy.pointers_max_hz = 0;
    CHECK_OK(settle("cpu-clock", &policy, &a, 1));
    CHECK(a.flags & PD_ATTR_EXCLUDE_CALLCHAIN_USER);
}

/* The kernel copies registers and stack of the program that it works for. */
TEST(stacks_are_unwound_where_only_the_kernel_is_sampled) {
    EventPolicy policy = {
        .frequency_hz = 99, .call_graph = EVENT_CALL_GRAPH_UNWIND, .stack_bytes = 8192};
    const char *const texts[] = {"cycles", "cycles:u", "cycles:k"};
    PdAttr a;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CHECK_OK(settle(texts[i], &policy, &a, 1));
        CHECK_EQ(a.sample_stack_user, 8192);
        CHECK(a.sample_type & PD_SAMPLE_REGS_USER && a.sample_type & PD_SAMPLE_CALLCHAIN);
    }
    CHECK_OK(settle("ftrace:function", &policy, &a, 1));
    CHECK_EQ(a.sample_stack_user, 0);
}

TEST(only_the_leader_of_a_read_group_samples) {
    EventPolicy policy = {.frequency_hz = 99, .inherit = true};
    PdAttr attrs[3];

    CHECK_OK(settle("{cycles,cs,sched:sched_switch}:S", &policy, attrs, 3));
    CHECK(attrs[0].flags & PD_ATTR_DISABLED);
    CHECK(!(attrs[1].flags & PD_ATTR_DISABLED));
    CHECK_EQ(attrs[0].sample_period, 99);
    for (unsigned i = 0; i < 3; i++) {
        CHECK(attrs[i].sample_type & PD_SAMPLE_READ);
        CHECK(attrs[i].read_format & PD_FORMAT_GROUP);
        CHECK(!(attrs[i].flags & PD_ATTR_INHERIT));
        CHECK_EQ(attrs[i].sample_type, attrs[0].sample_type);
    }
    CHECK_EQ(attrs[2].sample_period, 0);
    CHECK(!(attrs[1].flags & PD_ATTR_FREQ));
}

TEST(attrs_for_old_kernels_omit_newer_features) {
    EventPolicy policy = {.frequency_hz = 99, .no_lost = true, .no_cgroup = true};
    PdAttr a;

    CHECK_OK(settle("cycles", &policy, &a, 1));
    CHECK_EQ(a.read_format, PD_FORMAT_ID);
    CHECK(!(a.sample_type & PD_SAMPLE_CGROUP));
}

/* The settings that are given up one after the other while the kernel answers the same. */
static void give_up(PdAttr *a, const EventPolicy *policy, int with, Buffer *told) {
    const char *what;

    while (event_attr_fallback(a, policy, with, &what) > 0) {
        buffer_append(told, what, strlen(what));
        buffer_append(told, "; ", 2);
    }
    buffer_append(told, "", 1);
}

TEST(the_error_decides_which_setting_is_given_up) {
    /* clang-format off */
    static const struct { const char *text; int error; const char *told; } rows[] = {
        { "cycles",             -ENOENT,     "CPU cycles, for cpu-clock; " },
        { "cycles:pp",          -EOPNOTSUPP, "one step of precise_ip; one step of precise_ip; CPU cycles, for cpu-clock; " },
        { "instructions",       -ENOENT,     "" },
        { "sched:sched_switch", -ENOENT,     "" },
        { "cpu-clock:I",        -EPERM,      "leaving out the idle task; kernel samples; " },
        { "cycles",             -EACCES,     "kernel samples; " },
        { "cycles:u",           -EACCES,     "" },
        { "cycles:k",           -EACCES,     "" },
        { "sched:sched_switch", -EACCES,     "" },
        { "r1a8",               -EINVAL,     "leaving out guests; counting what is lost; the cgroup of samples; " },
        { "cs",                 -EINVAL,     "counting what is lost; the cgroup of samples; " },
        { "cycles/call-graph=lbr/", -EOPNOTSUPP, "the branch stack; CPU cycles, for cpu-clock; " },
        { "cycles/call-graph=lbr/", -EINVAL, "the index of the branch stack; the branch stack; leaving out guests; counting what is lost; the cgroup of samples; " },
        { "cycles",             -EMFILE,     "" },
        { "cycles",             0,           "" },
    };
    /* clang-format on */
    EventPolicy policy = {.frequency_hz = 99};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(buffer_done) Buffer told = {};
        PdAttr a;

        CHECK_OK(settle(rows[i].text, &policy, &a, 1));
        give_up(&a, &policy, rows[i].error, &told);
        CHECK_STREQ((const char *)told.data, rows[i].told);
    }
}

TEST(cycles_become_a_clock_that_excludes_the_idle_task) {
    EventPolicy policy = {.frequency_hz = 99, .exclude_idle = true};
    _cleanup_(buffer_done) Buffer name = {};
    const char *what;
    PdAttr a;

    CHECK_OK(settle("cycles:ppu", &policy, &a, 1));
    CHECK_EQ(event_attr_fallback(&a, &policy, -ENOENT, &what), 1);
    CHECK_EQ(a.type, PERF_TYPE_SOFTWARE);
    CHECK_EQ(a.config, PERF_COUNT_SW_CPU_CLOCK);
    CHECK(a.flags & PD_ATTR_EXCLUDE_IDLE);
    CHECK_EQ(a.flags >> PD_ATTR_PRECISE_IP_SHIFT & 3, 0);
    pd_attr_name(&a, &name);
    buffer_append(&name, "", 1);
    CHECK_STREQ((const char *)name.data, "cpu-clock:u");
}

TEST(without_rights_for_the_kernel_only_user_code_is_sampled) {
    EventPolicy policy = {.frequency_hz = 99};
    const char *what;
    PdAttr a;

    CHECK_OK(settle("cycles", &policy, &a, 1));
    CHECK_EQ(event_attr_fallback(&a, &policy, -EACCES, &what), 1);
    CHECK(a.flags & PD_ATTR_EXCLUDE_KERNEL);
    CHECK(a.flags & PD_ATTR_EXCLUDE_HV);
    CHECK_EQ(event_attr_fallback(&a, &policy, -EACCES, &what), 0);
}

TEST_MAIN()
