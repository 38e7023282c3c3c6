/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/event/event-attr.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/*
 * Makes the attr of an event, in the order in which perf record decides: what each sample holds, at
 * which rate, with which call graph, what is excluded, and last what a group leader that reads its
 * members means for them. The golden tests compare the result with what the real perf opens.
 *
 * When the kernel refuses an attr, each fallback step gives up one thing; the least important one
 * is given up first. The kernel's errno explains little, so every step that may help is tried.
 */

enum {
    PRECISE_MASK_SHIFT = PD_ATTR_PRECISE_IP_SHIFT,
    PRECISE_MOST = 3,
};

#define PRECISE_MASK (3ULL << PRECISE_MASK_SHIFT)

/* The registers that an unwinder starts with: all of user code except flat segments. */
#if defined(__x86_64__)
static const uint64_t user_registers = 0xff0fff;
#elif defined(__aarch64__)
static const uint64_t user_registers = 0x1ffffffff;
#else
static const uint64_t user_registers = 0;
#endif

static bool event_attr_is_clock(const PdAttr *a) {
    return a->type == PERF_TYPE_SOFTWARE &&
           (a->config == PERF_COUNT_SW_CPU_CLOCK || a->config == PERF_COUNT_SW_TASK_CLOCK);
}

static bool event_attr_is_hardware(const PdAttr *a) {
    return a->type == PERF_TYPE_HARDWARE || a->type == PERF_TYPE_HW_CACHE ||
           a->type == PERF_TYPE_RAW || a->type > PERF_TYPE_BREAKPOINT;
}

static bool event_attr_is_bpf_output(const PdAttr *a) {
    return a->type == PERF_TYPE_SOFTWARE && a->config == PERF_COUNT_SW_BPF_OUTPUT;
}

static int event_attr_fail(const EventSpec *s, char *error, size_t size, const char *why) {
    (void)snprintf(error, size, "Event '%s' %s", s->name, why);
    return -EINVAL;
}

/* -- settling -----------------------------------------------------------------------------------
 */

static uint64_t event_attr_bounded_rate(const EventPolicy *policy, uint64_t hz) {
    return policy->max_frequency_hz > 0 ? MIN(hz, policy->max_frequency_hz) : hz;
}

/* A fixed period is in the attr, so a sample does not need it. */
static void event_attr_settle_rate(const EventSpec *s, const EventPolicy *policy, PdAttr *a) {
    uint64_t hz = s->frequency_hz;

    if (hz == 0 && s->period > 0) {
        a->sample_period = s->period;
        a->sample_type &= ~PD_SAMPLE_PERIOD;
        return;
    }
    if (hz == 0 && (policy->period > 0 || (s->default_period > 0 && !policy->frequency_is_set))) {
        a->sample_period = policy->period > 0 ? policy->period : s->default_period;
        return;
    }
    a->sample_period = event_attr_bounded_rate(policy, hz > 0 ? hz : policy->frequency_hz);
    a->sample_type |= PD_SAMPLE_PERIOD;
    a->flags |= PD_ATTR_FREQ;
}

static void event_attr_settle_stack(const EventSpec *s, EventCallGraph kind,
                                    const EventPolicy *policy, PdAttr *a) {
    bool has_pointers = kind == EVENT_CALL_GRAPH_UNWIND && a->flags & PD_ATTR_FREQ &&
                        a->sample_period <= policy->pointers_max_hz;
    /* StackSize= belongs to the session's call graph. */
    uint32_t of_session = s->call_graph == EVENT_CALL_GRAPH_UNSET ? policy->stack_bytes : 0;
    uint32_t bytes = s->stack_bytes ? s->stack_bytes : of_session;

    a->sample_type |= PD_SAMPLE_REGS_USER | PD_SAMPLE_STACK_USER;
    a->sample_regs_user = user_registers;
    a->sample_stack_user = ALIGN8(bytes ? bytes : EVENT_STACK_BYTES_USUAL);
    if (!has_pointers)
        a->flags |= PD_ATTR_EXCLUDE_CALLCHAIN_USER;
}

/* ftrace:function runs where the user's stack cannot be read. */
static bool event_attr_is_function_trace(const EventSpec *s) {
    return s->system && strcmp(s->system, "ftrace") == 0 && strcmp(s->tracepoint, "function") == 0;
}

static int event_attr_settle_call_graph(const EventSpec *s, const EventPolicy *policy, PdAttr *a,
                                        char *error, size_t error_size) {
    EventCallGraph kind = s->call_graph;

    if (kind == EVENT_CALL_GRAPH_UNSET && s->max_stack > 0)
        kind = EVENT_CALL_GRAPH_FP;
    if (kind == EVENT_CALL_GRAPH_UNSET)
        kind = policy->call_graph;
    if (kind == EVENT_CALL_GRAPH_UNSET || kind == EVENT_CALL_GRAPH_NONE)
        return 0;
    a->sample_type |= PD_SAMPLE_CALLCHAIN;
    a->sample_max_stack = s->max_stack;
    if (event_attr_is_function_trace(s))
        a->flags |= PD_ATTR_EXCLUDE_CALLCHAIN_USER;
    else if (kind == EVENT_CALL_GRAPH_DWARF && user_registers == 0)
        return event_attr_fail(
            s, error, error_size,
            "cannot have the call graph 'dwarf' on this architecture, 'fp' works");
    else if (kind == EVENT_CALL_GRAPH_DWARF || kind == EVENT_CALL_GRAPH_UNWIND)
        event_attr_settle_stack(s, kind, policy, a);
    else if (kind == EVENT_CALL_GRAPH_LBR && !(a->flags & PD_ATTR_EXCLUDE_USER)) {
        a->sample_type |= PD_SAMPLE_BRANCH_STACK;
        a->branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK |
                                PERF_SAMPLE_BRANCH_NO_CYCLES | PERF_SAMPLE_BRANCH_NO_FLAGS |
                                PERF_SAMPLE_BRANCH_HW_INDEX;
    }
    return 0;
}

static int event_attr_settle_exclusions(const EventSpec *s, const EventPolicy *policy, PdAttr *a,
                                        char *error, size_t error_size) {
    const uint64_t user_and_kernel = PD_ATTR_EXCLUDE_USER | PD_ATTR_EXCLUDE_KERNEL;

    if (policy->exclude_user)
        a->flags |= PD_ATTR_EXCLUDE_USER;
    if (policy->exclude_kernel)
        a->flags |= PD_ATTR_EXCLUDE_KERNEL;
    if (policy->exclude_idle && event_attr_is_clock(a))
        a->flags |= PD_ATTR_EXCLUDE_IDLE;
    if ((a->flags & user_and_kernel) == user_and_kernel &&
        (s->flags & user_and_kernel) != user_and_kernel)
        return event_attr_fail(
            s, error, error_size,
            "would count nothing: its modifiers ask only for what the session leaves out");
    return 0;
}

static int event_attr_settle_one(const EventList *list, size_t i, const EventPolicy *policy,
                                 PdAttr *a, char *error, size_t error_size) {
    const EventSpec *s = &list->specs[i];
    int r;

    *a = (PdAttr){
        .type = s->type,
        .config = s->config,
        .config1 = s->config1,
        .config2 = s->config2,
        .config3 = s->config3,
        .bp_type = s->bp_type,
        .sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_IP | PD_SAMPLE_TID | PD_SAMPLE_TIME |
                       PD_SAMPLE_CPU | (policy->no_cgroup ? 0 : PD_SAMPLE_CGROUP),
        .read_format = PD_FORMAT_ID | (policy->no_lost ? 0 : PD_FORMAT_LOST),
        .flags = s->flags | PD_ATTR_WATERMARK | PD_ATTR_SAMPLE_ID_ALL | PD_ATTR_USE_CLOCKID |
                 (uint64_t)(s->precise_is_most ? PRECISE_MOST : s->precise) << PRECISE_MASK_SHIFT,
        .wakeup_events = policy->watermark_bytes,
        .clockid = CLOCK_MONOTONIC,
    };
    /* A group starts and stops with its leader. */
    if (s->leader == i)
        a->flags |= PD_ATTR_DISABLED;
    if (policy->inherit && !s->no_inherit)
        a->flags |= PD_ATTR_INHERIT;
    if (s->type == PERF_TYPE_TRACEPOINT || event_attr_is_bpf_output(a))
        a->sample_type |= PD_SAMPLE_RAW | PD_SAMPLE_PERIOD;
    if (s->branch_type) {
        a->sample_type |= PD_SAMPLE_BRANCH_STACK;
        a->branch_sample_type = s->branch_type;
    }
    event_attr_settle_rate(s, policy, a);
    r = event_attr_settle_exclusions(s, policy, a, error, error_size);
    return r < 0 ? r : event_attr_settle_call_graph(s, policy, a, error, error_size);
}

/* Each sample brings the counts of its group, so the members take no samples themselves. */
static void event_attr_settle_reads(const EventList *list, PdAttr *attrs) {
    for (size_t i = 0; i < list->n; i++) {
        const EventSpec *s = &list->specs[i], *leader = &list->specs[s->leader];
        PdAttr *a = &attrs[i];

        if (s->sample_read) {
            a->sample_type |= PD_SAMPLE_READ;
            a->flags &= ~PD_ATTR_INHERIT;
            if (leader->n_members > 1)
                a->read_format |= PD_FORMAT_GROUP;
        }
        if (s->leader != i && leader->sample_read) {
            a->sample_period = 0;
            a->flags &= ~PD_ATTR_FREQ;
            a->sample_type = attrs[s->leader].sample_type;
        }
    }
}

bool event_attr_has_registers(void) {
    return user_registers != 0;
}

PdAttr event_attr_unwound(const PdAttr *attr) {
    PdAttr unwound = *attr;

    unwound.sample_type &= ~(uint64_t)(PD_SAMPLE_REGS_USER | PD_SAMPLE_STACK_USER);
    unwound.flags &= ~PD_ATTR_EXCLUDE_CALLCHAIN_USER;
    unwound.sample_regs_user = 0;
    unwound.sample_stack_user = 0;
    return unwound;
}

bool event_attr_is_for_unwinding(const EventSpec *spec, const EventPolicy *policy,
                                 const PdAttr *attr) {
    return spec->call_graph == EVENT_CALL_GRAPH_UNSET && spec->max_stack == 0 &&
           policy->call_graph == EVENT_CALL_GRAPH_UNWIND &&
           attr->sample_type & PD_SAMPLE_STACK_USER;
}

int event_attrs_settle(const EventList *list, const EventPolicy *policy, PdAttr *ret,
                       size_t *ret_bad, char *error, size_t error_size) {
    for (size_t i = 0; i < list->n; i++) {
        int r = event_attr_settle_one(list, i, policy, &ret[i], error, error_size);

        if (r < 0) {
            *ret_bad = i;
            return r;
        }
    }
    event_attr_settle_reads(list, ret);
    return 0;
}

/* -- giving up ----------------------------------------------------------------------------------
 */

typedef struct Step {
    int errors[4];
    const char *given_up;
    bool (*take)(PdAttr *a,
                 const EventPolicy *policy); /* false: the attr has nothing of this to give up */
} Step;

static bool event_attr_drop_flag(PdAttr *a, uint64_t flag) {
    bool had = a->flags & flag;

    a->flags &= ~flag;
    return had;
}

static bool event_attr_lower_precise(PdAttr *a, const EventPolicy *policy _unused_) {
    if (!(a->flags & PRECISE_MASK))
        return false;
    a->flags -= 1ULL << PRECISE_MASK_SHIFT;
    return true;
}

static bool event_attr_drop_branches(PdAttr *a, const EventPolicy *policy _unused_) {
    if (!(a->sample_type & PD_SAMPLE_BRANCH_STACK))
        return false;
    a->sample_type &= ~PD_SAMPLE_BRANCH_STACK;
    a->branch_sample_type = 0;
    return true;
}

static bool event_attr_drop_branch_index(PdAttr *a, const EventPolicy *policy _unused_) {
    bool had = a->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX;

    a->branch_sample_type &= ~(uint64_t)PERF_SAMPLE_BRANCH_HW_INDEX;
    return had;
}

/* On machines with several kinds of CPU the upper half of config selects the kind. */
static bool event_attr_take_clock(PdAttr *a, const EventPolicy *policy) {
    if (a->type != PERF_TYPE_HARDWARE || (a->config & UINT32_MAX) != PERF_COUNT_HW_CPU_CYCLES)
        return false;
    a->type = PERF_TYPE_SOFTWARE;
    a->config = PERF_COUNT_SW_CPU_CLOCK;
    a->flags &= ~PRECISE_MASK;
    if (policy->exclude_idle)
        a->flags |= PD_ATTR_EXCLUDE_IDLE;
    return true;
}

static bool event_attr_drop_idle(PdAttr *a, const EventPolicy *policy _unused_) {
    return event_attr_drop_flag(a, PD_ATTR_EXCLUDE_IDLE);
}

static bool event_attr_drop_guest(PdAttr *a, const EventPolicy *policy _unused_) {
    return event_attr_is_hardware(a) && event_attr_drop_flag(a, PD_ATTR_EXCLUDE_GUEST);
}

static bool event_attr_drop_lost(PdAttr *a, const EventPolicy *policy _unused_) {
    bool had = a->read_format & PD_FORMAT_LOST;

    a->read_format &= ~(uint64_t)PD_FORMAT_LOST;
    return had;
}

static bool event_attr_drop_cgroup(PdAttr *a, const EventPolicy *policy _unused_) {
    bool had = a->sample_type & PD_SAMPLE_CGROUP;

    a->sample_type &= ~PD_SAMPLE_CGROUP;
    return had;
}

/* Some kernels and architectures have no copies of stacks. */
static bool event_attr_drop_stack(PdAttr *a, const EventPolicy *policy _unused_) {
    bool had = a->sample_type & PD_SAMPLE_STACK_USER;

    if (had)
        *a = event_attr_unwound(a);
    return had;
}

/* Excluding the kernel does not help an event that counts only the kernel, nor a tracepoint, whose
 * data needs the same rights. */
static bool event_attr_drop_kernel(PdAttr *a, const EventPolicy *policy _unused_) {
    if (a->flags & (PD_ATTR_EXCLUDE_KERNEL | PD_ATTR_EXCLUDE_USER) ||
        a->type == PERF_TYPE_TRACEPOINT)
        return false;
    a->flags |= PD_ATTR_EXCLUDE_KERNEL | PD_ATTR_EXCLUDE_HV;
    return true;
}

/* clang-format off */
static const Step steps[] = {
    { { -EOPNOTSUPP, -EINVAL },               "one step of precise_ip",                 event_attr_lower_precise     },
    { { -EINVAL },                            "the index of the branch stack",          event_attr_drop_branch_index },
    { { -EOPNOTSUPP, -EINVAL },               "the branch stack",                       event_attr_drop_branches     },
    { { -ENOENT, -EOPNOTSUPP, -ENXIO, -ENODEV }, "CPU cycles, for cpu-clock",           event_attr_take_clock        },
    { { -EPERM, -EINVAL },                    "leaving out the idle task",              event_attr_drop_idle         },
    { { -EINVAL, -EOPNOTSUPP },               "leaving out guests",                     event_attr_drop_guest        },
    { { -EINVAL },                            "counting what is lost",                  event_attr_drop_lost         },
    { { -EINVAL },                            "the cgroup of samples",                  event_attr_drop_cgroup       },
    { { -EACCES, -EPERM },                    "kernel samples",                         event_attr_drop_kernel       },
    { { -ENOSYS },                            "copies of the user stack",               event_attr_drop_stack        },
};
/* clang-format on */

int event_attr_fallback(PdAttr *attr, const EventPolicy *policy, int error,
                        const char **ret_given_up) {
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
        for (size_t j = 0; j < ARRAY_SIZE(steps[0].errors); j++)
            if (error < 0 && steps[i].errors[j] == error && steps[i].take(attr, policy)) {
                *ret_given_up = steps[i].given_up;
                return 1;
            }
    return 0;
}
