/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/plan/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "capture/event/event-tracing.h"
#include "capture/plan/degraded-reason.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/text.h"

/*
 * From the text of Event= to attrs that this kernel takes: parses, makes attrs, has each event
 * tried, and settles what concerns all of them, such as rates and call graphs.
 */

enum {
    DESCRIBED_MAX = 4,
    FREQUENCY_MAX_HZ = 100000,
    /* The kernel's walk by frame pointers takes some 0.1 us a frame, beside the copy of the
     * stack. */
    POINTERS_MAX_HZ = 1000,
};

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
    char why[PLAN_ERROR_MAX] = "";
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
