/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/plan/plan-settle.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "capture/plan/degraded-reason.h"
#include "capture/plan/limit.h"
#include "util/cgroup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

/*
 * Each event is tried, and what the kernel refuses is given up step by step, once for all CPUs: a
 * session whose CPUs counted different things would compare nothing. An event that one CPU does not
 * have may be another's (machines with several kinds of CPU), so it is asked for on all of them
 * before anything else is taken.
 */

#define PRECISE_BITS (3ULL << PD_ATTR_PRECISE_IP_SHIFT)

/* On the first CPU that has it; what other CPUs say counts only where they say no such thing. */
static int plan_try_somewhere(const PlanOptions *options, const PlanEvent *event,
                              unsigned *ret_cpu) {
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
static bool plan_lacks_cgroup(const PlanOptions *options, int error, const PdAttr *attr,
                              unsigned cpu) {
    return (error == -ENOENT || error == -EOPNOTSUPP) && options->target.cgroup &&
           plan_try(options->keeper, attr, plan_any, cpu) == 0;
}

static int plan_log_no_cgroup(int error, const SessionConfig *config) {
    _cleanup_free_ CgroupTree *tree = malloc(sizeof(*tree));

    if (!tree || cgroup_tree_find("", tree) < 0)
        return log_error(error,
                         "Cannot start '%s': no control groups are mounted that perf events "
                         "follow, mount cgroup2 and restart profd",
                         config->name);
    return log_error(error, "Cannot start '%s': control group '%s' does not exist below '%s'%s",
                     config->name, config->cgroup, tree->mount,
                     tree->version == 1 ? " (control groups of version 1)" : "");
}

/* Stepping down from the utmost is how `P` is meant, and happens on most machines. */
static bool plan_is_precision_only(const PdAttr *before, const PdAttr *after) {
    uint64_t changed = before->flags ^ after->flags;

    return changed != 0 && (changed & ~PRECISE_BITS) == 0 && before->type == after->type &&
           before->config == after->config;
}

/* Logs and notes what the session loses by one step down. */
static int plan_note_given_up(Planning *planning, const EventSpec *spec, const PlanEvent *event,
                              const PdAttr *before, const char *given_up) {
    const SessionConfig *config = planning->options->config;
    const PdAttr *after = &event->attr;

    if (after->type != before->type || after->config != before->config) {
        log_at(spec->is_auto ? LOG_LEVEL_DEBUG : LOG_LEVEL_NOTICE, 0,
               "This machine has no counter for '%s', so session '%s' samples cpu-clock instead",
               event->name, config->name);
        if (spec->is_auto)
            return 0;
        planning->plan->degraded |= DEGRADED_FALLBACK_EVENT;
        return plan_note(
            planning->notes, PLAN_FALLBACK, 0,
            "There is no hardware counter for event '%s' here, cpu-clock is sampled instead",
            event->name);
    }
    if (after->flags & ~before->flags & PD_ATTR_EXCLUDE_KERNEL)
        planning->plan->degraded |= DEGRADED_NO_KERNEL;
    (void)log_at(plan_is_precision_only(before, after) ? LOG_LEVEL_DEBUG : LOG_LEVEL_NOTICE, 0,
                 "Event '%s' of session '%s' is recorded without %s, which this machine or profd's "
                 "rights do not allow",
                 event->name, config->name, given_up);
    if ((before->branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK &&
         !after->branch_sample_type) ||
        (before->sample_type & ~after->sample_type & PD_SAMPLE_STACK_USER && !event->may_unwind))
        planning->plan->degraded |= DEGRADED_FALLBACK_CALL_GRAPH;
    return 0;
}

/* Every event of the session would fail like that. */
static bool plan_is_of_session(int error) {
    return error == -ENOMEM || error == -EPIPE || error == -EMFILE || error == -ENFILE ||
           error == -ESRCH || error == -ETIMEDOUT;
}

/* With a sentence in `why`, the event can be left out; without one the session fails. */
static int plan_fail_event(const PlanOptions *options, int error, const PlanEvent *event,
                           unsigned cpu, char why[PLAN_ERROR_MAX]) {
    const char *helps = limit_remedy(error);

    if (plan_is_of_session(error))
        return limit_log_open_failure(error, options->config->name, event->name, cpu);
    snprintf(why, PLAN_ERROR_MAX, "Event '%s' cannot be opened on CPU %u%s%s%s: %s", event->name,
             cpu, helps ? " (" : "", helps ?: "", helps ? ")" : "", strerror(-error));
    return error;
}

static int plan_rename_event(PlanEvent *event) {
    _cleanup_(buffer_done) Buffer name = {};

    pd_attr_name(&event->attr, &name);
    text_putc(&name, '\0');
    if (buffer_error(&name) < 0)
        return buffer_error(&name);
    free(event->name);
    event->name = (char *)TAKE_PTR(name.data);
    return 0;
}

static int plan_settle_event(Planning *planning, size_t index, char why[PLAN_ERROR_MAX]) {
    const PlanOptions *options = planning->options;
    PlanEvent *event = &planning->plan->events[index];
    const EventSpec *spec = &planning->list->specs[index];
    PdAttr asked = event->attr;
    unsigned cpu = options->online->cpus[0];
    int r;

    while ((r = plan_try_somewhere(options, event, &cpu)) < 0) {
        PdAttr before = event->attr;
        const char *given_up;

        if (plan_lacks_cgroup(options, r, &event->attr, cpu))
            return plan_log_no_cgroup(r, options->config);
        if (event_attr_fallback(&event->attr, &planning->policy, r, &given_up) == 0)
            return plan_fail_event(options, r, event, cpu, why);
        event->is_unwound &= (event->attr.sample_type & PD_SAMPLE_STACK_USER) != 0;
        r = plan_note_given_up(planning, spec, event, &before, given_up);
        if (r < 0)
            return r;
    }
    return asked.type != event->attr.type || asked.config != event->attr.config
               ? plan_rename_event(event)
               : 0;
}

/* Opens the whole group on one CPU, all without rings. */
static int plan_try_group(const PlanOptions *options, const Plan *plan, size_t leader,
                          unsigned cpu) {
    _cleanup_free_ uint32_t *slots = calloc(plan->n, sizeof(*slots));
    size_t n = 0;
    int r = slots ? 0 : -ENOMEM;

    for (size_t e = leader; r == 0 && e < plan->n; e++) {
        KeeperEvent event = plan_event_on(options->target, cpu);
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

static void plan_break_group(Plan *plan, size_t leader) {
    for (size_t e = leader; e < plan->n; e++)
        if (plan->events[e].leader == (int)leader) {
            plan->events[e].leader = PLAN_NO_LEADER;
            plan->events[e].attr.flags |= PD_ATTR_DISABLED;
        }
}

static int plan_settle_group(const Planning *planning, size_t leader, char why[PLAN_ERROR_MAX]) {
    const PlanOptions *options = planning->options;
    const EventSpec *spec = &planning->list->specs[leader];
    const PlanEvent *event = &planning->plan->events[leader];
    unsigned cpu = event->cpus.n > 0 ? event->cpus.cpus[0] : options->online->cpus[0];
    int r = spec->n_members > 1 ? plan_try_group(options, planning->plan, leader, cpu) : 0;

    if (r == 0 || r == -ENODEV)
        return 0;
    if (spec->weak && !plan_is_of_session(r)) {
        log_notice(
            "The group of '%s' in session '%s' does not fit into the counters and is broken up",
            event->name, options->config->name);
        plan_break_group(planning->plan, leader);
        return 0;
    }
    if (plan_is_of_session(r))
        return limit_log_open_failure(r, options->config->name, event->name, cpu);
    snprintf(why, PLAN_ERROR_MAX,
             "The group of '%s' does not fit into the counters of CPU %u, make it smaller or let "
             "it be broken up with the modifier W: %s",
             event->name, cpu, strerror(-r));
    return r;
}

/* Without the event, or the group that it leads. */
static void plan_remove_item(Planning *planning, size_t first) {
    size_t n = planning->list->specs[first].n_members;
    Plan *plan = planning->plan;

    for (size_t i = first; i < first + n; i++)
        plan_event_done(&plan->events[i]);
    memmove(&plan->events[first], &plan->events[first + n],
            (plan->n - first - n) * sizeof(*plan->events));
    plan->n -= n;
    for (size_t i = first; i < plan->n; i++)
        if (plan->events[i].leader != PLAN_NO_LEADER)
            plan->events[i].leader -= (int)n;
    event_list_remove(planning->list, first);
}

/* An event or a group: what of it cannot be opened takes it away as a whole. */
static int plan_settle_item(Planning *planning, size_t first, size_t *ret_n) {
    size_t n = planning->list->specs[first].n_members;
    char why[PLAN_ERROR_MAX] = "";
    int r = 0;

    for (size_t i = first; r == 0 && i < first + n; i++)
        r = plan_settle_event(planning, i, why);
    if (r == 0)
        r = plan_settle_group(planning, first, why);
    *ret_n = r == 0 ? n : 0;
    if (r == 0 || !why[0])
        return r;
    r = plan_note(planning->notes, PLAN_LEFT_OUT, r, "%s", why);
    plan_remove_item(planning, first);
    return r;
}

/* Before the next event is opened. */
static int plan_may_go_on(const PlanOptions *options) {
    if (options->is_unwanted && atomic_load(options->is_unwanted))
        return -ECANCELED;
    return options->until_ns > 0 && clock_monotonic_ns() > options->until_ns ? -ETIME : 0;
}

int plan_settle_items(Planning *planning) {
    size_t n;
    int r = 0;

    for (size_t i = 0; r == 0 && i < planning->plan->n; i += n) {
        r = plan_may_go_on(planning->options);
        if (r == 0)
            r = plan_settle_item(planning, i, &n);
    }
    return r;
}
