/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "capture/event-attr.h"
#include "capture/event-list.h"
#include "capture/event-tracing.h"
#include "capture/limit.h"
#include "capture/sampler.h"
#include "util/cgroup.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/text.h"

/*
 * From the text of Event= to attrs that this kernel takes. Each event is tried, and what the kernel
 * refuses is given up step by step, once for all CPUs: a session whose CPUs counted different
 * things would compare nothing. An event that one CPU does not have may be another's (machines with
 * several kinds of CPU), so it is asked for on all of them before anything else is taken.
 */

#define PRECISE_BITS (3ULL << PD_ATTR_PRECISE_IP_SHIFT)

enum { ERROR_TEXT_MAX = 512, DESCRIBED_MAX = 4 };

void plan_done(Plan *plan) {
    for (size_t i = 0; i < plan->n; i++) {
        free(plan->events[i].name);
        cpu_list_done(&plan->events[i].cpus);
    }
    free(plan->events);
    free(plan->description);
    buffer_done(&plan->tracing);
    *plan = (Plan){};
}

int plan_encode(const PdAttr *attr, KeeperEvent *ret) {
    _cleanup_(buffer_done) Buffer bytes = {};

    pd_attr_encode(attr, pd_attr_size_needed(attr), &bytes, false);
    if (buffer_error(&bytes) < 0)
        return buffer_error(&bytes);
    if (bytes.size > sizeof(ret->attr))
        return -E2BIG;
    memset(ret->attr, 0, sizeof(ret->attr));
    memcpy(ret->attr, bytes.data, bytes.size);
    ret->attr_size = (uint32_t)bytes.size;
    return 0;
}

static KeeperEvent event_on(PlanTarget target, unsigned cpu) {
    return (KeeperEvent){.pid = target.pid,
                         .cpu = (int32_t)cpu,
                         .cgroup = target.cgroup,
                         .leader_slot = KEEPER_NO_SLOT,
                         .output_slot = KEEPER_NO_SLOT};
}

int plan_try(Keeper *keeper, const PdAttr *attr, PlanTarget target, unsigned cpu) {
    KeeperEvent event = event_on(target, cpu);
    _cleanup_close_ int fd = -1;
    uint32_t slot;
    int r = plan_encode(attr, &event);

    if (r == 0)
        r = keeper_open_event(keeper, &event, &slot, &fd);
    return r < 0 ? r : keeper_close_event(keeper, slot);
}

static uint64_t hash_text(uint64_t seed, const char *text) {
    return hash_bytes(seed, (Bytes){.data = (const uint8_t *)text, .size = strlen(text)});
}

/* What concerns only where the samples go, how many fit, or on which CPUs, makes no other session.
 */
uint64_t plan_identity(const SessionConfig *config) {
    const uint64_t numbers[] = {
        config->frequency_hz, config->period,       config->call_graph,     config->dwarf_bytes,
        config->exclude_idle, config->user_samples, config->kernel_samples, config->n_pids,
    };
    uint64_t h = hash_text(1, config->name);

    h = hash_text(h, config->events);
    h = hash_text(h, config->cgroup);
    h = hash_bytes(h, (Bytes){.data = (const uint8_t *)numbers, .size = sizeof(numbers)});
    return hash_bytes(h, (Bytes){.data = (const uint8_t *)config->pids,
                                 .size = config->n_pids * sizeof(*config->pids)});
}

static EventPolicy policy_of(const PlanOptions *options) {
    /* clang-format off */
    static const EventCallGraph call_graphs[] = {
        [CALL_GRAPH_NONE]  = EVENT_CALL_GRAPH_NONE,
        [CALL_GRAPH_FP]    = EVENT_CALL_GRAPH_FP,
        [CALL_GRAPH_DWARF] = EVENT_CALL_GRAPH_DWARF,
        [CALL_GRAPH_LBR]   = EVENT_CALL_GRAPH_LBR,
    };
    /* clang-format on */
    const SessionConfig *config = options->config;

    return (EventPolicy){
        .frequency_hz = config->frequency_hz,
        .max_frequency_hz = options->max_hz,
        .period = config->period,
        .call_graph = call_graphs[config->call_graph],
        .stack_bytes = config->dwarf_bytes,
        .exclude_idle = config->exclude_idle,
        .exclude_user = !config->user_samples,
        .exclude_kernel = !config->kernel_samples,
        .inherit = config->n_pids > 0 || options->target.pid >= 0,
        .no_lost = options->no_lost,
        .no_cgroup = options->no_cgroup,
    };
}

/* On the first CPU that has it; what other CPUs say counts only where they say no such thing. */
static int try_somewhere(const PlanOptions *options, const PlanEvent *event, unsigned *ret_cpu) {
    int r = -ENODEV;

    for (size_t i = 0; i < options->online->n && (r == -ENODEV || r == -ENOENT); i++) {
        unsigned cpu = options->online->cpus[i];

        if (event->cpus.n > 0 && !cpu_list_has(&event->cpus, cpu))
            continue;
        *ret_cpu = cpu;
        r = plan_try(options->keeper, &event->attr, options->target, cpu);
    }
    return r;
}

/* A cgroup that is not there is ENOENT too, as is an event; EOPNOTSUPP where there are none at all.
 */
static bool lacks_cgroup(const PlanOptions *options, int error, const PdAttr *attr, unsigned cpu) {
    return (error == -ENOENT || error == -EOPNOTSUPP) && options->target.cgroup &&
           plan_try(options->keeper, attr, plan_any, cpu) == 0;
}

static int log_no_cgroup(int error, const SessionConfig *config) {
    _cleanup_free_ CgroupTree *tree = malloc(sizeof(*tree));

    if (!tree || cgroup_tree_find("", tree) < 0)
        return log_error(error,
                         "Session '%s' is for the cgroup '%s', but no control groups are mounted "
                         "that perf events follow, mount cgroup2 and restart profd",
                         config->name, config->cgroup);
    return log_error(
        error,
        "Session '%s' is for the cgroup '%s', which is not there below '%s'%s, make it "
        "or change Cgroup=",
        config->name, config->cgroup, tree->mount,
        tree->version == 1 ? " (control groups of version 1)" : "");
}

/* Stepping down from the utmost is how `P` is meant, and happens on most machines. */
static bool is_precision_only(const PdAttr *before, const PdAttr *after) {
    uint64_t changed = before->flags ^ after->flags;

    return changed != 0 && (changed & ~PRECISE_BITS) == 0 && before->type == after->type &&
           before->config == after->config;
}

static void note_given_up(Plan *plan, PlanEvent *event, const SessionConfig *config,
                          const PdAttr *before, const char *given_up) {
    const PdAttr *after = &event->attr;

    if (after->type != before->type || after->config != before->config) {
        plan->degraded |= DEGRADED_FALLBACK_EVENT;
        log_notice("This machine has no counter for '%s', so session '%s' samples cpu-clock "
                   "instead",
                   event->name, config->name);
        return;
    }
    if (after->flags & ~before->flags & PD_ATTR_EXCLUDE_KERNEL)
        plan->degraded |= DEGRADED_NO_KERNEL;
    (void)log_at(is_precision_only(before, after) ? LOG_LEVEL_DEBUG : LOG_LEVEL_NOTICE, 0,
                 "Event '%s' of session '%s' does without %s, which this machine or our rights do "
                 "not give",
                 event->name, config->name, given_up);
}

static int settle_event(const PlanOptions *options, const EventPolicy *policy, Plan *plan,
                        PlanEvent *event) {
    const SessionConfig *config = options->config;
    PdAttr asked = event->attr;
    unsigned cpu = options->online->cpus[0];
    int r;

    while ((r = try_somewhere(options, event, &cpu)) < 0) {
        PdAttr before = event->attr;
        const char *given_up;

        if (lacks_cgroup(options, r, &event->attr, cpu))
            return log_no_cgroup(r, config);
        if (event_attr_fallback(&event->attr, policy, r, &given_up) == 0)
            return limit_log_open_failure(r, config->name, event->name, cpu);
        note_given_up(plan, event, config, &before, given_up);
    }
    if (asked.type != event->attr.type || asked.config != event->attr.config) {
        _cleanup_(buffer_done) Buffer name = {};

        pd_attr_name(&event->attr, &name);
        text_putc(&name, '\0');
        if (buffer_error(&name) < 0)
            return buffer_error(&name);
        free(event->name);
        event->name = (char *)TAKE_PTR(name.data);
    }
    return 0;
}

/* Opens the whole group on one CPU, all without rings. */
static int try_group(const PlanOptions *options, const Plan *plan, size_t leader, unsigned cpu) {
    _cleanup_free_ uint32_t *slots = calloc(plan->n, sizeof(*slots));
    size_t n = 0;
    int r = slots ? 0 : -ENOMEM;

    for (size_t e = leader; r == 0 && e < plan->n; e++) {
        KeeperEvent event = event_on(options->target, cpu);
        _cleanup_close_ int fd = -1;

        if (e != leader && plan->events[e].leader != (int)leader)
            continue;
        event.leader_slot = n > 0 ? slots[0] : KEEPER_NO_SLOT;
        r = plan_encode(&plan->events[e].attr, &event);
        if (r == 0)
            r = keeper_open_event(options->keeper, &event, &slots[n], &fd);
        n += r == 0;
    }
    while (n > 0)
        (void)keeper_close_event(options->keeper, slots[--n]);
    return r;
}

static void break_group(Plan *plan, size_t leader) {
    for (size_t e = leader; e < plan->n; e++)
        if (plan->events[e].leader == (int)leader) {
            plan->events[e].leader = PLAN_NO_LEADER;
            plan->events[e].attr.flags |= PD_ATTR_DISABLED;
        }
}

static int settle_group(const PlanOptions *options, const EventList *list, Plan *plan,
                        size_t leader) {
    const PlanEvent *event = &plan->events[leader];
    unsigned cpu = event->cpus.n > 0 ? event->cpus.cpus[0] : options->online->cpus[0];
    int r = list->specs[leader].n_members > 1 ? try_group(options, plan, leader, cpu) : 0;

    if (r == 0 || r == -ENODEV)
        return 0;
    if (!list->specs[leader].weak)
        return log_error(r,
                         "The group of '%s' in session '%s' does not fit into the counters of CPU "
                         "%u, make it smaller or let it be broken up with the modifier W: %m",
                         event->name, options->config->name, cpu);
    log_notice("The group of '%s' in session '%s' does not fit into the counters and is broken up",
               event->name, options->config->name);
    break_group(plan, leader);
    return 0;
}

static int take_specs(const EventList *list, const PdAttr *attrs, Plan *plan) {
    plan->events = calloc(list->n, sizeof(*plan->events));
    if (!plan->events)
        return -ENOMEM;
    for (size_t i = 0; i < list->n; i++) {
        const EventSpec *spec = &list->specs[i];
        PlanEvent *event = &plan->events[plan->n++];
        int r;

        *event = (PlanEvent){.attr = attrs[i],
                             .name = strdup(spec->name),
                             .leader = spec->leader == i ? PLAN_NO_LEADER : (int)spec->leader};
        if (!event->name)
            return -ENOMEM;
        r = spec->cpus ? cpu_list_parse(spec->cpus, &event->cpus) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

static uint64_t asked_hz(const EventSpec *spec, const SessionConfig *config) {
    return spec->frequency_hz ?: config->frequency_hz;
}

static void settle_rates(const PlanOptions *options, const EventList *list, Plan *plan) {
    const SessionConfig *config = options->config;
    uint64_t lowered = 0;

    for (size_t i = 0; i < plan->n; i++) {
        const PdAttr *attr = &plan->events[i].attr;
        uint64_t asked = asked_hz(&list->specs[i], config);

        if (!(attr->flags & PD_ATTR_FREQ))
            continue;
        plan->hz = MAX(plan->hz, attr->sample_period);
        lowered = attr->sample_period < asked ? MAX(lowered, asked) : lowered;
    }
    if (lowered == 0)
        return;
    plan->degraded |= DEGRADED_RATE_LOWERED;
    log_warning(0,
                "Sampling session '%s' at %" PRIu64 " Hz instead of %" PRIu64
                ", the limit of MaxFrequency= or kernel.perf_event_max_sample_rate",
                config->name, options->max_hz, lowered);
}

static int describe(const SessionConfig *config, Plan *plan) {
    _cleanup_(buffer_done) Buffer text = {};

    for (size_t i = 0; i < MIN(plan->n, (size_t)DESCRIBED_MAX); i++)
        text_printf(&text, "%s%s", i > 0 ? ", " : "", plan->events[i].name);
    if (plan->n > DESCRIBED_MAX)
        text_printf(&text, " and %zu more events", plan->n - DESCRIBED_MAX);
    if (plan->hz > 0)
        text_printf(&text, " at %" PRIu64 " Hz", plan->hz);
    else if (config->period > 0)
        text_printf(&text, " each %" PRIu64, config->period);
    text_putc(&text, '\0');
    if (buffer_error(&text) < 0)
        return buffer_error(&text);
    plan->description = (char *)TAKE_PTR(text.data);
    return 0;
}

static int open_tracefs(void *userdata, const char *path, int *ret_fd) {
    return keeper_open_tracefs(userdata, path, ret_fd);
}

static int parse(const PlanOptions *options, const EventHost *host, EventList **ret_list,
                 Plan *plan) {
    const SessionConfig *config = options->config;
    _cleanup_(event_list_freep) EventList *list = NULL;
    _cleanup_free_ PdAttr *attrs = NULL;
    EventPolicy policy = policy_of(options);
    char error[ERROR_TEXT_MAX] = "";
    int r = event_list_parse(config->events, host, &list, error, sizeof(error));

    if (r == 0) {
        attrs = calloc(list->n, sizeof(*attrs));
        r = attrs ? event_attrs_settle(list, &policy, attrs, error, sizeof(error)) : -ENOMEM;
    }
    if (r < 0)
        return error[0] ? log_error(r, "%s, in Event= of session '%s'", error, config->name) : r;
    r = take_specs(list, attrs, plan);
    for (size_t i = 0; r == 0 && i < plan->n; i++)
        r = settle_event(options, &policy, plan, &plan->events[i]);
    *ret_list = TAKE_PTR(list);
    return r;
}

int plan_make(const PlanOptions *options, Plan *ret) {
    EventHost host = {.sysfs = "/sys", .open_tracefs = open_tracefs, .userdata = options->keeper};
    _cleanup_(event_list_freep) EventList *list = NULL;
    _cleanup_(plan_done) Plan plan = {};
    int r = parse(options, &host, &list, &plan);

    for (size_t i = 0; r == 0 && i < plan.n; i++)
        r = settle_group(options, list, &plan, i);
    if (r < 0)
        return r;
    settle_rates(options, list, &plan);
    r = event_tracing(list, &host, &plan.tracing);
    if (r < 0)
        return log_error(r,
                         "Failed to read how the tracepoints of session '%s' look, is tracefs "
                         "mounted?: %m",
                         options->config->name);
    r = describe(options->config, &plan);
    if (r < 0)
        return r;
    *ret = plan;
    plan = (Plan){};
    return 0;
}
