/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/plan/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "capture/event/event-attr.h"
#include "capture/event/event-list.h"
#include "capture/event/event-tracing.h"
#include "capture/plan/limit.h"
#include "capture/plan/degraded-reason.h"
#include "util/cgroup.h"
#include "util/hash.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

/*
 * From the text of Event= to attrs that this kernel takes. Each event is tried, and what the kernel
 * refuses is given up step by step, once for all CPUs: a session whose CPUs counted different
 * things would compare nothing. An event that one CPU does not have may be another's (machines with
 * several kinds of CPU), so it is asked for on all of them before anything else is taken.
 */

#define PRECISE_BITS (3ULL << PD_ATTR_PRECISE_IP_SHIFT)

enum {
    ERROR_TEXT_MAX = 1024,
    DESCRIBED_MAX = 4,
    FREQUENCY_MAX_HZ = 100000,
    /* The kernel's walk by frame pointers takes some 0.1 us a frame, beside the copy of the
     * stack. */
    POINTERS_MAX_HZ = 1000,
};

/* A plan that is being made. */
typedef struct Planning {
    const PlanOptions *options;
    EventPolicy policy;
    EventHost host;
    EventList *list; /* of the same events as the plan, in the same order */
    Plan *plan;
    PlanNotes *notes;
} Planning;

static void plan_event_done(PlanEvent *event) {
    free(event->name);
    cpu_list_done(&event->cpus);
}

void plan_done(Plan *plan) {
    for (size_t i = 0; i < plan->n; i++)
        plan_event_done(&plan->events[i]);
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

static KeeperEvent plan_event_on(PlanTarget target, unsigned cpu) {
    return (KeeperEvent){.pid = target.pid,
                         .cpu = (int32_t)cpu,
                         .cgroup = target.cgroup,
                         .leader_slot = KEEPER_NO_SLOT,
                         .output_slot = KEEPER_NO_SLOT};
}

int plan_try(Keeper *keeper, const PdAttr *attr, PlanTarget target, unsigned cpu) {
    KeeperEvent event = plan_event_on(target, cpu);
    uint32_t slot;
    int fd = -1, r = plan_encode(attr, &event);

    if (r == 0)
        r = keeper_open_event(keeper, &event, &slot, &fd);
    /* The last one to close a tracepoint waits for all CPUs: that is to be the keeper. */
    closep(&fd);
    return r < 0 ? r : keeper_close_event(keeper, slot);
}

static uint64_t plan_frequency(const SessionConfig *config) {
    return config->frequency_hz == CONFIG_FREQUENCY_MAX ? (uint64_t)FREQUENCY_MAX_HZ
                                                        : config->frequency_hz;
}

static uint64_t plan_hash_text(uint64_t seed, const char *text) {
    return hash_bytes(seed, (Bytes){.data = (const uint8_t *)text, .size = strlen(text)});
}

/* What concerns only where the samples go, how many fit, or on which CPUs, makes no other session.
 */
uint64_t plan_identity(const SessionConfig *config) {
    const uint64_t numbers[] = {
        config->frequency_hz, config->period,           config->call_graph,     config->stack_bytes,
        config->exclude_idle, config->user_samples,     config->kernel_samples, config->n_pids,
        config->n_tids,       config->frequency_is_set,
    };
    uint64_t h = plan_hash_text(1, config->name);

    h = plan_hash_text(h, config->events);
    h = plan_hash_text(h, config->cgroup);
    h = hash_bytes(h, (Bytes){.data = (const uint8_t *)numbers, .size = sizeof(numbers)});
    h = hash_bytes(h, (Bytes){.data = (const uint8_t *)config->tids,
                              .size = config->n_tids * sizeof(*config->tids)});
    return hash_bytes(h, (Bytes){.data = (const uint8_t *)config->pids,
                                 .size = config->n_pids * sizeof(*config->pids)});
}

/* Registers of user code are known on few architectures; without them there is nothing to unwind.
 */
static CallGraph plan_call_graph_of(const SessionConfig *config) {
    CallGraph kind = config->call_graph == CALL_GRAPH_AUTO ? CALL_GRAPH_UNWIND : config->call_graph;

    return (kind == CALL_GRAPH_DWARF || kind == CALL_GRAPH_UNWIND) && !event_attr_has_registers()
               ? CALL_GRAPH_FP
               : kind;
}

static EventPolicy plan_policy_of(const PlanOptions *options) {
    /* clang-format off */
    static const EventCallGraph call_graphs[] = {
        [CALL_GRAPH_NONE]   = EVENT_CALL_GRAPH_NONE,
        [CALL_GRAPH_FP]     = EVENT_CALL_GRAPH_FP,
        [CALL_GRAPH_DWARF]  = EVENT_CALL_GRAPH_DWARF,
        [CALL_GRAPH_LBR]    = EVENT_CALL_GRAPH_LBR,
        [CALL_GRAPH_UNWIND] = EVENT_CALL_GRAPH_UNWIND,
    };
    /* clang-format on */
    const SessionConfig *config = options->config;

    return (EventPolicy){
        .frequency_hz = plan_frequency(config),
        .max_frequency_hz = options->max_hz,
        .frequency_is_set = config->frequency_is_set,
        .period = config->period,
        .call_graph = call_graphs[plan_call_graph_of(config)],
        .stack_bytes =
            config->call_graph == CALL_GRAPH_AUTO ? (uint32_t)PLAN_AUTO_BYTES : config->stack_bytes,
        .pointers_max_hz = config->call_graph == CALL_GRAPH_AUTO ? (uint64_t)POINTERS_MAX_HZ : 0,
        .exclude_idle = config->exclude_idle,
        .exclude_user = !config->user_samples,
        .exclude_kernel = !config->kernel_samples,
        .inherit = config->n_pids > 0 || (options->target.pid >= 0 && config->n_tids == 0),
        .no_lost = options->no_lost,
        .no_cgroup = options->no_cgroup,
    };
}

static int plan_on_bad_event(void *userdata, int error, const char *sentence) {
    return plan_note(userdata, PLAN_LEFT_OUT, error, "%s", sentence);
}

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
static bool plan_is_precision_only(const PdAttr *before, const PdAttr *after) {
    uint64_t changed = before->flags ^ after->flags;

    return changed != 0 && (changed & ~PRECISE_BITS) == 0 && before->type == after->type &&
           before->config == after->config;
}

/* What is lost with one step down. */
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
           error == -ESRCH;
}

/* With a sentence in `why`, the event can be left out; without one the session fails. */
static int plan_fail_event(const PlanOptions *options, int error, const PlanEvent *event,
                           unsigned cpu, char why[ERROR_TEXT_MAX]) {
    const char *helps = limit_remedy(error);

    if (plan_is_of_session(error))
        return limit_log_open_failure(error, options->config->name, event->name, cpu);
    snprintf(why, ERROR_TEXT_MAX, "Event '%s' cannot be opened on CPU %u%s%s%s: %s", event->name,
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

static int plan_settle_event(Planning *planning, size_t index, char why[ERROR_TEXT_MAX]) {
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

static int plan_settle_group(const Planning *planning, size_t leader, char why[ERROR_TEXT_MAX]) {
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
    snprintf(why, ERROR_TEXT_MAX,
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
    char why[ERROR_TEXT_MAX] = "";
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

static int plan_settle_items(Planning *planning) {
    size_t n;
    int r = 0;

    for (size_t i = 0; r == 0 && i < planning->plan->n; i += n) {
        r = plan_may_go_on(planning->options);
        if (r == 0)
            r = plan_settle_item(planning, i, &n);
    }
    return r;
}

static int plan_take_specs(const Planning *planning, const PdAttr *attrs) {
    const EventList *list = planning->list;
    Plan *plan = planning->plan;

    plan->events = calloc(list->n, sizeof(*plan->events));
    if (!plan->events)
        return -ENOMEM;
    for (size_t i = 0; i < list->n; i++) {
        const EventSpec *spec = &list->specs[i];
        PlanEvent *event = &plan->events[plan->n++];
        int r;

        *event = (PlanEvent){.attr = attrs[i],
                             .is_unwound =
                                 event_attr_is_for_unwinding(spec, &planning->policy, &attrs[i]),
                             .name = strdup(spec->name),
                             .leader = spec->leader == i ? PLAN_NO_LEADER : (int)spec->leader};
        event->may_unwind =
            event->is_unwound && planning->options->config->call_graph == CALL_GRAPH_AUTO;
        if (!event->name)
            return -ENOMEM;
        r = spec->cpus ? cpu_list_parse(spec->cpus, &event->cpus) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

/* With Frequency=max nothing is asked for that could be lowered. */
static uint64_t plan_asked_hz(const EventSpec *spec, const SessionConfig *config) {
    bool is_max = config->frequency_hz == CONFIG_FREQUENCY_MAX;

    return spec->frequency_hz ?: is_max ? 0 : config->frequency_hz;
}

static void plan_settle_rates(const PlanOptions *options, const EventList *list, Plan *plan) {
    const SessionConfig *config = options->config;
    uint64_t lowered = 0;

    for (size_t i = 0; i < plan->n; i++) {
        const PdAttr *attr = &plan->events[i].attr;
        uint64_t asked = plan_asked_hz(&list->specs[i], config);

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

static int plan_describe(const SessionConfig *config, Plan *plan) {
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

static int plan_open_tracefs(void *userdata, const char *path, int *ret_fd) {
    return keeper_open_tracefs(userdata, path, ret_fd);
}

static char *plan_find_modules(void) {
    struct utsname name;
    char *path;

    return uname(&name) == 0 && asprintf(&path, "/lib/modules/%s/modules.dep", name.release) >= 0
               ? path
               : NULL;
}

/* What the session makes of each event, without those for which it makes no sense. */
static int plan_settle_attrs(Planning *planning, PdAttr **ret) {
    _cleanup_free_ PdAttr *attrs = calloc(MAX(planning->list->n, (size_t)1), sizeof(*attrs));
    char why[ERROR_TEXT_MAX] = "";
    size_t bad;
    int r;

    if (!attrs)
        return -ENOMEM;
    while ((r = event_attrs_settle(planning->list, &planning->policy, attrs, &bad, why,
                                   sizeof(why))) < 0) {
        r = plan_note(planning->notes, PLAN_LEFT_OUT, r, "%s", why);
        if (r < 0)
            return r;
        event_list_remove(planning->list, bad);
    }
    *ret = TAKE_PTR(attrs);
    return 0;
}

static int plan_parse(Planning *planning) {
    const char *events = planning->options->events ?: planning->options->config->events;
    _cleanup_free_ PdAttr *attrs = NULL;
    int r = event_list_parse_each(events, &planning->host, plan_on_bad_event, planning->notes,
                                  &planning->list);

    if (r == 0)
        r = plan_settle_attrs(planning, &attrs);
    if (r == 0)
        r = plan_take_specs(planning, attrs);
    return r == 0 ? plan_settle_items(planning) : r;
}

/* What is left is known, and there may be nothing left. */
static int plan_finish(const Planning *planning) {
    const PlanOptions *options = planning->options;
    Plan *plan = planning->plan;
    int r;

    if (plan->n == 0)
        return plan_notes_left_out(planning->notes)->error;
    if (plan_notes_left_out(planning->notes))
        plan->degraded |= DEGRADED_MISSING_EVENTS;
    if (options->config->call_graph != CALL_GRAPH_AUTO &&
        plan_call_graph_of(options->config) != options->config->call_graph)
        plan->degraded |= DEGRADED_FALLBACK_CALL_GRAPH;
    plan_settle_rates(options, planning->list, plan);
    plan_settle_call_graph(plan, options->config->call_graph);
    if (options->no_tables && plan_may_choose(plan))
        plan_use_frame_pointers(plan, CALL_GRAPH_NO_TABLES);
    r = event_tracing(planning->list, &planning->host, &plan->tracing);
    if (r < 0)
        return log_error(r,
                         "Failed to read the formats of the tracepoints of session '%s', is "
                         "tracefs mounted?: %m",
                         options->config->name);
    return plan_describe(options->config, plan);
}

int plan_make(const PlanOptions *options, PlanNotes *notes, Plan *ret) {
    _cleanup_free_ char *modules = plan_find_modules();
    _cleanup_(plan_done) Plan plan = {};
    Planning planning = {.options = options,
                         .policy = plan_policy_of(options),
                         .host = {.sysfs = "/sys",
                                  .modules = modules,
                                  .open_tracefs = plan_open_tracefs,
                                  .userdata = options->keeper},
                         .plan = &plan,
                         .notes = notes};
    int r = plan_parse(&planning);

    if (r == 0)
        r = plan_finish(&planning);
    event_list_free(planning.list);
    if (r < 0)
        return r;
    *ret = plan;
    plan = (Plan){};
    return 0;
}
