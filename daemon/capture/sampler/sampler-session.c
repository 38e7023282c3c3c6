/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/sampler/sampler-session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/follow/data-map.h"
#include "capture/follow/group.h"
#include "capture/follow/rate.h"
#include "capture/follow/watch-ring.h"
#include "capture/follow/watch.h"
#include "capture/open/adopt.h"
#include "capture/open/arena-memory.h"
#include "capture/open/event-table.h"
#include "capture/open/open-ring.h"
#include "capture/open/target.h"
#include "capture/open/thread-list.h"
#include "capture/plan/degraded-reason.h"
#include "capture/plan/limit.h"
#include "capture/plan/ring-plan.h"
#include "util/log.h"

/*
 * How a session begins: the memory that it may use, its plan, its rings, and its place in the list.
 * A session that cannot be opened leaves nothing behind and disturbs no other.
 */

static bool sampler_follows_for(const Sampler *sampler, const SessionConfig *config) {
    return sampler_follows_processes(sampler) && !plan_has_threads(config) && !config->cgroup[0];
}

int sampler_check_descriptors(const char *name, uint64_t needed) {
    uint64_t limit;
    int r;

    r = limit_descriptors(needed, &limit);
    if (r == 0)
        return 0;
    return log_error(r,
                     "Not starting %s, %" PRIu64 " file descriptors are needed for its events on "
                     "all CPUs and the limit is %" PRIu64 ", set LimitNOFILE=%" PRIu64 " or more",
                     name, needed, limit, needed * 2 + 1024);
}

SamplerSession *sampler_session_free(SamplerSession *session, bool at_keeper) {
    ring_set_done(&session->rings, at_keeper);
    arena_memory_close(session, at_keeper);
    pd_events_free(session->events);
    pd_events_free(session->taken);
    plan_done(&session->plan);
    plan_notes_done(&session->notes);
    cpu_list_done(&session->wanted);
    cpu_list_done(&session->room.online);
    free(session->tids);
    free(session);
    return NULL;
}

/* The online CPUs that the session wants. */
static int sampler_list_wanted(const SamplerSession *session, CpuList *ret) {
    const CpuList *online = &session->room.online;
    int r = cpu_list_copy(online, ret);

    if (r < 0)
        return r;
    ret->n = 0;
    for (size_t i = 0; i < online->n; i++)
        if (session_wants_cpu(session, online->cpus[i]))
            ret->cpus[ret->n++] = online->cpus[i];
    return 0;
}

/* Where locking is limited, as for an ordinary user who follows processes, the kernel counts rings
 * against the user, with a page each. The part of data mappings is reserved, since a session that
 * samples stacks may be added at any time. */
static uint64_t sampler_rings_budget(const Sampler *sampler) {
    uint64_t budget = sampler->options.buffer_total_bytes, shared, locked;

    if (!sampler_follows_processes(sampler) && !sampler->options.locking_is_limited)
        return budget;
    shared = ring_set_bytes(&sampler->side_band) +
             sampler->side_band.n * (sampler->data_bytes + 3 * (uint64_t)sysconf(_SC_PAGESIZE));
    locked = limit_locked_bytes();
    locked = shared < locked ? locked - shared : 0;
    return MIN(budget, locked);
}

static void sampler_size_rings(SamplerSession *session, const CpuList *cpus) {
    const SessionRoom *room = &session->room;
    RingPlan rings =
        ring_plan(&session->plan, &(RingRoom){.cpus = cpus,
                                              .buffer_bytes = session->config.buffer_bytes,
                                              .left_bytes = room->ring_bytes});

    session->ring_bytes = rings.bytes;
    session->bytes_per_sec = rings.bytes_per_sec;
    if (!rings.is_small)
        return;
    session->degraded |= DEGRADED_SMALL_RINGS;
    log_warning(0,
                "The rings of session '%s' get %" PRIu64 " bytes a CPU instead of %" PRIu64
                " and hold about %" PRIu64 " ms of samples, raise %s for all %zu CPUs to have more",
                session->config.name, rings.bytes, rings.wanted_bytes, rings.span_ms,
                room->is_by_config ? "MaxBufferTotal="
                                   : "LimitMEMLOCK= or kernel.perf_event_mlock_kb",
                cpus->n);
}

/* The kernel has no event that is inherited and whose samples bring the counts of its group. */
static int sampler_check_inherited(const SamplerSession *session) {
    if (!session->rings.ops->inherits)
        return 0;
    for (size_t i = 0; i < session->plan.n; i++)
        if (!(session->plan.events[i].attr.flags & PD_ATTR_INHERIT))
            return log_error(-EOPNOTSUPP,
                             "Session '%s' has the event '%s', which cannot be followed from "
                             "process to process, leave out its modifiers or start profd as root",
                             session->config.name, session->plan.events[i].name);
    return 0;
}

static void sampler_log_left_out(const SamplerSession *session, const char *then) {
    for (size_t i = 0; i < session->notes.n; i++)
        if (session->notes.items[i].kind == PLAN_LEFT_OUT)
            log_warning(0, "Event= of session '%s', %s: %s", session->config.name, then,
                        session->notes.items[i].text);
}

/* After an error in its events the session `default` records its default event: a typo must not
 * stop the recorder on a whole fleet. Other sessions record nothing that was not asked for. */
static int sampler_plan_default(SamplerSession *session, PlanOptions *options) {
    int r;

    sampler_log_left_out(session, "which records its default event");
    options->events = CONFIG_DEFAULT_EVENT;
    r = plan_make(options, &session->notes, &session->plan);
    if (r == 0)
        session->plan.degraded |= DEGRADED_MISSING_EVENTS;
    return r;
}

static int sampler_make_plan(SamplerSession *session, PlanOptions *options) {
    const SessionConfig *config = &session->config;
    int r = plan_make(options, &session->notes, &session->plan);
    const PlanNote *left_out = plan_notes_left_out(&session->notes);
    const char *text;

    if (!left_out)
        return r;
    /* The caller that starts a session waits for the answer and reports the error itself. */
    if (r == 0 && config->runtime)
        r = left_out->error;
    else if (r == 0)
        sampler_log_left_out(session, "which records the others");
    else if (r == left_out->error && strcmp(config->name, CONFIG_DEFAULT_SESSION) == 0)
        r = sampler_plan_default(session, options);
    if (r >= 0)
        return 0;
    text = left_out->text;
    /* The sentence goes on in the middle of another. */
    return log_error(r, "Cannot record session '%s': %s%s", config->name,
                     strncmp(text, "Event ", 6) == 0 ? "e" : "",
                     text + (strncmp(text, "Event ", 6) == 0));
}

static PlanOptions sampler_plan_options(const SamplerSession *session) {
    const Sampler *sampler = session->sampler;
    const SessionConfig *config = &session->config;
    PlanOptions options = {
        .keeper = sampler->options.keeper,
        .config = config,
        .target = plan_any,
        .max_hz = limit_frequency(sampler->options.max_frequency_hz, sampler->max_rate_hz, 0),
        .online = &session->room.online,
        .is_unwanted = &session->is_unwanted,
        .no_lost = !(sampler->side_band_attr.read_format & PD_FORMAT_LOST),
        .no_cgroup = !(sampler->side_band_attr.flags & PD_ATTR_CGROUP),
        .no_tables = session->lacks_tables};

    if (session->n_tids > 0)
        options.target.pid = (int32_t)session->tids[0];
    /* Events are planned before their control group exists. */
    if (config->cgroup[0] && !session_lacks_group(session))
        options.target.cgroup = session->group.path;
    if (session->rings.ops->inherits)
        options.target.pid = (int32_t)sampler->options.keeper_pid;
    return options;
}

int sampler_session_settle(SamplerSession *session) {
    const SessionConfig *config = &session->config;
    PlanOptions options;
    int r = cpu_list_parse(config->cpus, &session->wanted);

    if (r < 0)
        return log_error(r, "Session '%s' has '%s' as its CPUs, a list is written as 0-3,8",
                         config->name, config->cpus);
    /* Rings of CPUs that are gone may hold samples that are not taken yet. */
    r = thread_list_read(session);
    if (r < 0 && r != -ESRCH)
        return r;
    options = sampler_plan_options(session);
    r = sampler_make_plan(session, &options);
    if (r == 0)
        r = sampler_check_inherited(session);
    if (r < 0)
        return r;
    session->degraded |= session->plan.degraded;
    session->identity = plan_identity(config);
    return 0;
}

static int sampler_open_cpus(SamplerSession *session) {
    const SessionConfig *config = &session->config;
    const CpuList *online = &session->room.online;
    _cleanup_(cpu_list_done) CpuList wanted = {};
    size_t n;
    int r = sampler_list_wanted(session, &wanted);

    if (r < 0)
        return r;
    n = wanted.n;
    sampler_size_rings(session, &wanted);
    r = adopt_rings(session->sampler, &session->rings);
    session->was_taken_over = session->rings.n > 0;
    if (r == 0 && session->n_tids == 0 && plan_has_threads(config) && !session->was_taken_over)
        return limit_log_open_failure(-ESRCH, config->name, session->plan.description,
                                      online->cpus[0]);
    if (r == 0)
        r = sampler_check_descriptors(config->name,
                                      session->room.used_descriptors +
                                          (n - MIN(n, session->rings.n)) * session->plan.n *
                                              MAX(session->n_tids, (size_t)1) +
                                          (plan_takes_stacks(&session->plan) ? online->n : 0));
    for (size_t i = 0; r >= 0 && i < online->n; i++)
        if (session_wants_cpu(session, online->cpus[i]) &&
            !ring_set_find(&session->rings, online->cpus[i]) && !session_lacks_group(session))
            r = open_ring(&session->rings, online->cpus[i]);
    if (r >= 0 && session->rings.n == 0 && !session_lacks_group(session))
        r = limit_log_open_failure(
            plan_has_threads(config) ? -ESRCH : -ENODEV, config->name, session->plan.description,
            session->wanted.n > 0 ? session->wanted.cpus[0] : online->cpus[0]);
    if (r >= 0)
        arena_memory_open(session, n);
    return MIN(r, 0);
}

/* Finds what the other sessions leave for this one. */
static int sampler_find_room(Sampler *sampler, SessionRoom *ret) {
    uint64_t budget = sampler_rings_budget(sampler), used = 0;

    for (const SamplerSession *s = sampler->sessions; s; s = s->next)
        used += ring_set_bytes(&s->rings);
    *ret = (SessionRoom){.ring_bytes = budget - MIN(budget, used),
                         .is_by_config = budget == sampler->options.buffer_total_bytes,
                         .used_descriptors = sampler_descriptors(sampler),
                         .n_offline = sampler->n_offline};
    return cpu_list_copy(&sampler->online, &ret->online);
}

int sampler_session_prepare(Sampler *sampler, const SessionConfig *config, SamplerSession **ret) {
    SamplerSession *session = calloc(1, sizeof(*session));
    int r;

    if (!session)
        return -ENOMEM;
    session->sampler = sampler;
    session->rings =
        (RingSet){.kind = TAG_SAMPLES,
                  .ops = sampler_follows_for(sampler, config) ? &process_target : &cpu_target,
                  .keeper = sampler->options.keeper,
                  .sampler = sampler,
                  .session = session};
    session->config = *config;
    session->lacks_tables = sampler->lacks_tables;
    rate_watch(sampler);
    r = sampler_find_room(sampler, &session->room);
    if (r == 0 && config->namespaces)
        r = open_namespaces(sampler);
    if (r < 0) {
        sampler_session_free(session, false);
        return r;
    }
    group_begin(session);
    *ret = session;
    return 0;
}

int sampler_session_open(SamplerSession *session) {
    int r = sampler_session_settle(session);

    return r == 0 ? sampler_open_cpus(session) : r;
}

/* An event on a CPU that went away meanwhile never samples again, even if the CPU is back. */
static void sampler_mark_lost_cpus(SamplerSession *session) {
    if (session->room.n_offline == session->sampler->n_offline)
        return;
    for (size_t i = 0; i < session->rings.n; i++)
        session->rings.rings[i]->is_gone = true;
}

int sampler_session_join(SamplerSession *session) {
    Sampler *sampler = session->sampler;
    SamplerSession **last = &sampler->sessions;
    int r = event_table_of_session(session);

    for (size_t i = 0; r == 0 && sampler->loop && i < session->rings.n; i++)
        r = watch_ring(session->rings.rings[i]);
    if (r < 0)
        return r;
    sampler_mark_lost_cpus(session);
    while (*last)
        last = &(*last)->next;
    *last = session;
    if (session->rings.ops->inherits && sampler->on_follow)
        (void)sampler->on_follow(sampler->follow_userdata);
    data_update(sampler);
    return watch_hurry(sampler);
}
