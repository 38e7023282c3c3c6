/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/plan/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "capture/plan/limit.h"
#include "capture/plan/plan.h"
#include "capture/plan/degraded-reason.h"
#include "util/cgroup.h"
#include "util/log.h"

/*
 * A configuration that passes records; one that does not record does not pass. Events are settled
 * by the plan that a start would make. Processes, control groups and CPUs come and go, so that one
 * that is not there now makes no configuration wrong.
 */

enum { SENTENCE_MAX = 1536 };

static const char present_path[] = "/sys/devices/system/cpu/present";

static void check_report(const CheckOptions *options, CheckResult result, const char *key,
                         const char *format, ...) _printf_(4, 5);

static void check_report(const CheckOptions *options, CheckResult result, const char *key,
                         const char *format, ...) {
    char sentence[SENTENCE_MAX];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, ap);
    va_end(ap);
    options->report(options->userdata, result, key, sentence);
}

static size_t check_count_common(const CpuList *wanted, const CpuList *there) {
    size_t n = 0;

    for (size_t i = 0; i < wanted->n; i++)
        n += cpu_list_has(there, wanted->cpus[i]);
    return n;
}

bool check_has_cpus(const char *list, unsigned *ret_absent) {
    _cleanup_(cpu_list_done) CpuList wanted = {}, present = {};

    if (cpu_list_parse(list, &wanted) < 0 || cpu_list_read(present_path, &present) < 0)
        return true;
    for (size_t i = 0; i < wanted.n; i++)
        if (!cpu_list_has(&present, wanted.cpus[i])) {
            *ret_absent = wanted.cpus[i];
            return false;
        }
    return true;
}

static int check_cpus(const CheckOptions *options, const SessionConfig *config) {
    _cleanup_(cpu_list_done) CpuList wanted = {}, present = {};
    size_t n;
    int r = cpu_list_parse(config->cpus, &wanted);

    if (r < 0)
        return r;
    if (wanted.n == 0 || cpu_list_read(present_path, &present) < 0)
        return 0;
    n = check_count_common(&wanted, &present);
    if (n == 0)
        check_report(options, CHECK_WRONG, "CPUs", "This host has none of the CPUs '%s'",
                     config->cpus);
    else if (check_count_common(&wanted, options->online) == 0)
        check_report(options, CHECK_UNKNOWN, "CPUs", "The CPUs '%s' are offline", config->cpus);
    else if (n < wanted.n)
        check_report(options, CHECK_REMARK, "CPUs", "This host has only %zu of the CPUs '%s'", n,
                     config->cpus);
    return 0;
}

static bool check_runs(uint32_t pid) {
    char path[64];

    snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
    return access(path, F_OK) == 0;
}

/* Events are tried on one that runs, if any does. */
static void check_threads(const CheckOptions *options, const char *key, const uint32_t *pids,
                          uint32_t n, PlanTarget *target) {
    for (uint32_t i = 0; i < n; i++)
        if (check_runs(pids[i])) {
            target->pid = (int32_t)pids[i];
            return;
        }
    if (n > 0)
        check_report(options, CHECK_UNKNOWN, key, "None of these processes or threads runs now");
}

static bool check_group_exists(const CgroupTree *tree, const char *cgroup) {
    char path[sizeof(tree->mount) + CONFIG_PATH_MAX + 1];

    snprintf(path, sizeof(path), "%s/%s", tree->mount, cgroup);
    return access(path, F_OK) == 0;
}

static void check_cgroup(const CheckOptions *options, const SessionConfig *config,
                         PlanTarget *target) {
    _cleanup_free_ CgroupTree *tree = malloc(sizeof(*tree));
    const char *below;

    if (!config->cgroup[0])
        return;
    if (!tree || cgroup_tree_find(options->root ?: "", tree) < 0) {
        check_report(options, CHECK_UNKNOWN, "Cgroup",
                     "No control groups are mounted that perf events follow");
        return;
    }
    below = cgroup_below_mount(tree, config->cgroup);
    if (below && check_group_exists(tree, below))
        target->cgroup = below;
    else if (check_group_exists(tree, config->cgroup))
        target->cgroup = config->cgroup;
    else
        check_report(options, CHECK_UNKNOWN, "Cgroup", "Control group '%s' does not exist now",
                     config->cgroup);
}

/* What another program, or the session before, holds now may be free when it is needed. */
static CheckResult check_judge(const CheckOptions *options, int error) {
    bool is_right = error == -EACCES || error == -EPERM || error == -ENOSYS;

    if (error == -ENOPKG || error == -EBUSY || error == -ENOSPC || error == -ESRCH ||
        (options->is_elsewhere && (is_right || error == -EMFILE || error == -ENFILE)))
        return CHECK_UNKNOWN;
    return CHECK_WRONG;
}

static void check_report_notes(const CheckOptions *options, const PlanNotes *notes) {
    for (size_t i = 0; i < notes->n; i++)
        check_report(options,
                     notes->items[i].kind == PLAN_FALLBACK
                         ? CHECK_REMARK
                         : check_judge(options, notes->items[i].error),
                     "Event", "%s", notes->items[i].text);
}

static void check_descriptors(const CheckOptions *options, const Plan *plan, size_t n_cpus) {
    uint64_t limit, needed = options->used_descriptors + plan->n * n_cpus;

    if (!options->is_elsewhere && limit_descriptors(needed, &limit) < 0)
        check_report(options, CHECK_WRONG, "Event",
                     "Its events need %" PRIu64
                     " file descriptors on all CPUs and the limit is %" PRIu64
                     ", set LimitNOFILE=%" PRIu64 " or more",
                     needed, limit, needed * 2 + 1024);
}

static void check_rings(const CheckOptions *options, const SessionConfig *config, size_t n_cpus) {
    uint64_t bytes = limit_ring_bytes(config->buffer_bytes, n_cpus, options->buffer_total_bytes);

    if (bytes * 2 <= config->buffer_bytes)
        check_report(options, CHECK_REMARK, "BufferSize",
                     "Rings on %zu CPUs get %" PRIu64
                     "K each, for MaxBufferTotal= holds for all of them",
                     n_cpus, bytes >> 10);
}

static void check_plan(const CheckOptions *options, const SessionConfig *config, const Plan *plan) {
    size_t n_cpus = options->online->n;

    if (plan->degraded & DEGRADED_RATE_LOWERED)
        check_report(options, CHECK_REMARK, "Frequency",
                     "This host allows %" PRIu64 " samples a second", plan->hz);
    if (plan->degraded & DEGRADED_FALLBACK_CALL_GRAPH)
        check_report(options, CHECK_REMARK, "CallGraph",
                     "This host cannot take such call graphs, fp is used instead");
    check_descriptors(options, plan, n_cpus);
    check_rings(options, config, n_cpus);
}

static int check_events(const CheckOptions *options, const SessionConfig *config,
                        PlanTarget target) {
    PlanOptions plan_options = {.keeper = options->keeper,
                                .config = config,
                                .target = target,
                                .max_hz = options->max_hz,
                                .online = options->online,
                                .no_lost = options->no_lost,
                                .no_cgroup = options->no_cgroup,
                                .until_ns = options->until_ns};
    _cleanup_(plan_notes_done) PlanNotes notes = {};
    _cleanup_(plan_done) Plan plan = {};
    char error[SENTENCE_MAX];
    int r;

    log_keep_error(error, sizeof(error));
    log_mute(true);
    r = plan_make(&plan_options, &notes, &plan);
    log_mute(false);
    log_keep_error(NULL, 0);
    check_report_notes(options, &notes);
    if (r == 0)
        check_plan(options, config, &plan);
    else if (r == -ENOMEM || r == -EPIPE)
        return r;
    else if (r == -ETIME)
        check_report(options, CHECK_UNKNOWN, "Event",
                     "This host takes too long to open events to try all of them");
    else if (!plan_notes_left_out(&notes))
        check_report(options, check_judge(options, r), "Event", "%s", error);
    return 0;
}

int check_session(const CheckOptions *options, const SessionConfig *config) {
    PlanTarget target = {.pid = options->keeper_pid > 0 ? options->keeper_pid : -1};
    int r = check_cpus(options, config);

    if (r < 0)
        return r;
    check_threads(options, "Pid", config->pids, config->n_pids, &target);
    check_threads(options, "Tid", config->tids, config->n_tids, &target);
    check_cgroup(options, config, &target);
    return check_events(options, config, target);
}
