/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/sampler/sampler.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include "capture/sampler/limit.h"
#include "capture/sampler/sampler-private.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * The object and its sessions. What it does with the rings is in sweep.c, what it opens in
 * sampler-open.c, what it takes over in adopt.c, CPUs that come and go in hotplug.c. A session that
 * cannot be opened leaves nothing behind and touches no other.
 */

enum { RECENT_SEC = 60 }; /* for so long a loss or a throttle makes a session degraded */

static const char online_path[] = "/sys/devices/system/cpu/online";
static const char present_path[] = "/sys/devices/system/cpu/present";

/* What else read() tells of the side-band event shapes no record; in the table it is like others.
 */
static int sampler_add_side_band_ids(PdEvents *events, const Sampler *sampler) {
    PdAttr attr = sampler->side_band_attr;
    PdEvent *event;
    int r;

    attr.read_format &= ~(uint64_t)PD_FORMAT_TOTAL_TIME_ENABLED;
    r = pd_events_add(events, &attr, (Bytes){}, NULL, 0, &event);
    for (size_t i = 0; r == 0 && i < sampler->side_band.n; i++)
        r = pd_events_add_ids(events, event, &sampler->side_band.rings[i]->counters[0].id, 1);
    if (r < 0)
        return r;
    return pd_events_set_name(events, event, (Bytes){.data = (const uint8_t *)"dummy", .size = 5});
}

static int sampler_add_ids(const RingSet *set, size_t index, PdEvents *events, PdEvent *event) {
    int r = 0;

    for (size_t i = 0; i < set->n; i++) {
        const CpuRing *ring = set->rings[i];

        for (size_t k = 0; r == 0 && k < ring->n_counters; k++)
            if (ring->counters[k].event == index &&
                (!ring->is_own || &ring->counters[k] == own_teller(ring, (unsigned)index)))
                r = pd_events_add_ids(events, event, &ring->counters[k].id, 1);
    }
    return r;
}

int sampler_build_events(Sampler *sampler) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    int r = pd_events_new(&events);

    if (r == 0)
        r = sampler_add_side_band_ids(events, sampler);
    if (r < 0)
        return r;
    pd_events_free(sampler->side_band_events);
    sampler->side_band_events = TAKE_PTR(events);
    return 0;
}

int session_build_events(SamplerSession *session) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    int r = pd_events_new(&events);

    for (size_t e = 0; r == 0 && e < session->plan.n; e++) {
        const PlanEvent *planned = &session->plan.events[e];
        PdEvent *event;

        r = pd_events_add(events, &planned->attr, (Bytes){}, NULL, 0, &event);
        if (r == 0 && planned->leader != PLAN_NO_LEADER)
            event->leader = (uint32_t)planned->leader;
        if (r == 0)
            r = sampler_add_ids(&session->rings, e, events, event);
        if (r == 0)
            r = pd_events_set_name(
                events, event,
                (Bytes){.data = (const uint8_t *)planned->name, .size = strlen(planned->name)});
    }
    if (r == 0)
        r = sampler_add_side_band_ids(events, session->sampler);
    if (r < 0)
        return r;
    pd_events_free(session->events);
    session->events = TAKE_PTR(events);
    return 0;
}

uint64_t sampler_descriptors(const Sampler *sampler) {
    uint64_t n = ring_set_counters(&sampler->side_band) + ring_set_counters(&sampler->data);

    for (const SamplerSession *s = sampler->sessions; s; s = s->next)
        n += ring_set_counters(&s->rings);
    return n;
}

CheckOptions sampler_check_options(const Sampler *sampler, const SamplerSession *old) {
    return (CheckOptions){
        .keeper = sampler->options.keeper,
        .online = &sampler->online,
        .max_hz = limit_frequency(sampler->options.max_frequency_hz, sampler->max_rate_hz, 0),
        .buffer_total_bytes = sampler->options.buffer_total_bytes,
        .own_pid = sampler->is_own ? (int32_t)sampler->options.own_pid : 0,
        .no_lost = !(sampler->side_band_attr.read_format & PD_FORMAT_LOST),
        .no_cgroup = !(sampler->side_band_attr.flags & PD_ATTR_CGROUP),
        .used_descriptors =
            sampler_descriptors(sampler) - (old ? ring_set_counters(&old->rings) : 0)};
}

static int sampler_check_descriptors(const char *name, uint64_t needed) {
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

static int sampler_read_cpus(Sampler *sampler, const char *path) {
    CpuList cpus = {};
    int r = cpu_list_read(path, &cpus);

    if (r < 0)
        return log_error(r, "Failed to read the list of CPUs from '%s', is /sys mounted?: %m",
                         path);
    cpu_list_done(&sampler->online);
    sampler->online = cpus;
    sampler->cpus_path = path;
    return 0;
}

/* A process may be followed on CPUs that are away, and then needs no care when they come. */
static int sampler_prepare_own(Sampler *sampler) {
    uint64_t each;
    int r = sampler_read_cpus(sampler, present_path);

    if (r < 0)
        return r;
    each = limit_locked_bytes() / sampler->online.n;
    sampler->side_band_bytes = limit_ring_bytes(SIDE_BAND_RING_BYTES, 1, each / 4);
    sampler->data_bytes = limit_ring_bytes(SIDE_BAND_RING_BYTES, 1, each / 8);
    return 0;
}

static int sampler_open_all_side_band(Sampler *sampler) {
    int r = open_settle_side_band(sampler, sampler->online.cpus[0]);

    if (r == 0 && sampler->is_own)
        r = sampler_prepare_own(sampler);
    if (r == 0)
        r = sampler_check_descriptors("profd", sampler_descriptors(sampler) + sampler->online.n);
    if (r == 0)
        r = adopt_rings(sampler, &sampler->side_band);
    if (r == 0)
        r = adopt_rings(sampler, &sampler->data);
    for (size_t i = 0; r >= 0 && i < sampler->online.n; i++)
        if (!ring_set_find(&sampler->side_band, sampler->online.cpus[i]))
            r = open_shared(sampler, &sampler->side_band, sampler->online.cpus[i]);
    return r < 0 ? r : sampler_build_events(sampler);
}

int sampler_new(const SamplerOptions *options, Sampler **ret) {
    _cleanup_(sampler_freep) Sampler *sampler = calloc(1, sizeof(*sampler));
    int r;

    if (!sampler)
        return -ENOMEM;
    sampler->options = *options;
    sampler->uevent_fd = sampler->online_fd = sampler->groups_fd = sampler->groups_watch = -1;
    sampler->max_rate_hz = limit_sample_rate();
    sampler->side_band.kind = TAG_SIDE_BAND;
    sampler->data.kind = TAG_DATA;
    sampler->side_band_bytes = sampler->data_bytes = SIDE_BAND_RING_BYTES;
    r = sampler_read_cpus(sampler, online_path);
    if (r == 0)
        r = adopt_list(sampler);
    if (r == 0)
        r = sampler_open_all_side_band(sampler);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(sampler);
    return 0;
}

SamplerSession *sampler_session_free(SamplerSession *session, bool at_keeper) {
    ring_set_done(&session->rings, at_keeper);
    pd_events_free(session->events);
    plan_done(&session->plan);
    plan_notes_done(&session->notes);
    cpu_list_done(&session->wanted);
    cpu_list_done(&session->room.online);
    free(session->tids);
    free(session);
    return NULL;
}

/* The events live on at the keeper, for the next recorder. */
Sampler *sampler_free(Sampler *sampler) {
    if (!sampler)
        return NULL;
    while (sampler->sessions) {
        SamplerSession *session = sampler->sessions;

        sampler->sessions = session->next;
        sampler_session_free(session, false);
    }
    watch_done(sampler);
    ring_set_done(&sampler->side_band, false);
    ring_set_done(&sampler->data, false);
    for (size_t i = 0; i < sampler->n_held; i++)
        closep(&sampler->held[i].fd);
    free(sampler->held);
    pd_events_free(sampler->side_band_events);
    cpu_list_done(&sampler->online);
    closep(&sampler->online_fd);
    closep(&sampler->groups_fd);
    free(sampler->groups);
    buffer_done(&sampler->scratch);
    free(sampler);
    return NULL;
}

bool session_wants_cpu(const SamplerSession *session, unsigned cpu) {
    if (session->wanted.n > 0 && !cpu_list_has(&session->wanted, cpu))
        return false;
    for (size_t e = 0; e < session->plan.n; e++)
        if (session->plan.events[e].cpus.n == 0 || cpu_list_has(&session->plan.events[e].cpus, cpu))
            return true;
    return false;
}

bool session_lacks_cpu(const SamplerSession *session, bool online_only) {
    const CpuList *online = &session->sampler->online;

    for (size_t i = 0; i < online->n; i++)
        if (session_wants_cpu(session, online->cpus[i]) &&
            !ring_set_find(&session->rings, online->cpus[i]))
            return true;
    for (size_t i = 0; !online_only && i < session->wanted.n; i++)
        if (session_wants_cpu(session, session->wanted.cpus[i]) &&
            !ring_set_find(&session->rings, session->wanted.cpus[i]))
            return true;
    return false;
}

static size_t sampler_count_wanted(const SamplerSession *session) {
    const CpuList *online = &session->room.online;
    size_t n = 0;

    for (size_t i = 0; i < online->n; i++)
        n += session_wants_cpu(session, online->cpus[i]);
    return n;
}

/* Where only processes are followed the kernel counts rings against the user, with a page each.
 * Data mappings keep their part, since a session that samples stacks may come at any time. */
static uint64_t sampler_rings_budget(const Sampler *sampler) {
    uint64_t budget = sampler->options.buffer_total_bytes, shared, locked;

    if (!sampler->is_own)
        return budget;
    shared = ring_set_bytes(&sampler->side_band) +
             sampler->side_band.n * (sampler->data_bytes + 3 * (uint64_t)sysconf(_SC_PAGESIZE));
    locked = limit_locked_bytes();
    locked = shared < locked ? locked - shared : 0;
    return MIN(budget, locked);
}

static void sampler_size_rings(SamplerSession *session, size_t n_cpus) {
    const SessionRoom *room = &session->room;
    uint64_t wanted = session->config.buffer_bytes, hz = session->plan.hz;

    session->ring_bytes = limit_ring_bytes(wanted, n_cpus, room->ring_bytes);
    if (session->ring_bytes * 2 > wanted)
        return;
    session->degraded |= DEGRADED_SMALL_RINGS;
    log_warning(0,
                "The rings of session '%s' get %" PRIu64 " bytes a CPU instead of %" PRIu64
                " and hold about %" PRIu64 " ms of samples, raise %s for all %zu CPUs to have more",
                session->config.name, session->ring_bytes, wanted,
                limit_ring_span_ms(session->ring_bytes, hz ?: 1000),
                room->is_by_config ? "MaxBufferTotal=" : "kernel.perf_event_mlock_kb or ulimit -l",
                n_cpus);
}

/* The kernel has no event that is inherited and whose samples bring the counts of its group. */
static int sampler_check_inherited(const SamplerSession *session) {
    if (!own_is_for(session->sampler, &session->config))
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
            log_warning(0, "%s, in Event= of session '%s', %s", session->notes.items[i].text,
                        session->config.name, then);
}

/* The session `default` then records its default event: a typo must not stop the recorder on a
 * whole fleet. No other session records what nobody asked for. */
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

    if (!left_out)
        return r;
    /* Who starts a session waits for the answer and hears what is wrong. */
    if (r == 0 && config->runtime)
        r = left_out->error;
    else if (r == 0)
        sampler_log_left_out(session, "which records the others");
    else if (r == left_out->error && strcmp(config->name, CONFIG_DEFAULT_SESSION) == 0)
        r = sampler_plan_default(session, options);
    return r < 0 ? log_error(r, "%s, in Event= of session '%s'", left_out->text, config->name) : 0;
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
        .no_cgroup = !(sampler->side_band_attr.flags & PD_ATTR_CGROUP)};

    if (session->n_tids > 0)
        options.target.pid = (int32_t)session->tids[0];
    /* What is sampled is settled before there is a group. */
    if (config->cgroup[0] && !group_is_absent(session))
        options.target.cgroup = session->group.path;
    if (own_is_for(sampler, config))
        options.target.pid = (int32_t)sampler->options.own_pid;
    return options;
}

int sampler_session_settle(SamplerSession *session) {
    const SessionConfig *config = &session->config;
    PlanOptions options;
    int r = cpu_list_parse(config->cpus, &session->wanted);

    if (r < 0)
        return log_error(r, "Session '%s' has '%s' as its CPUs, a list is written as 0-3,8",
                         config->name, config->cpus);
    /* Those that are all gone may have left samples that are not taken yet. */
    r = open_list_threads(session);
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
    size_t n = sampler_count_wanted(session);
    int r;

    sampler_size_rings(session, n);
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
                                          (sampler_takes_stacks(session) ? online->n : 0));
    for (size_t i = 0; r >= 0 && i < online->n; i++)
        if (session_wants_cpu(session, online->cpus[i]) &&
            !ring_set_find(&session->rings, online->cpus[i]) && !group_is_absent(session))
            r = open_session(session, online->cpus[i]);
    if (r >= 0 && session->rings.n == 0 && !group_is_absent(session))
        r = limit_log_open_failure(
            plan_has_threads(config) ? -ESRCH : -ENODEV, config->name, session->plan.description,
            session->wanted.n > 0 ? session->wanted.cpus[0] : online->cpus[0]);
    return MIN(r, 0);
}

/* What is left for a session beside those that are there. */
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
    session->rings = (RingSet){.kind = TAG_SAMPLES, .session = session};
    session->config = *config;
    watch_rate(sampler);
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

/* An event on a CPU that went away meanwhile never samples again, even where the CPU is back. */
static void sampler_mark_lost_cpus(SamplerSession *session) {
    if (session->room.n_offline == session->sampler->n_offline)
        return;
    for (size_t i = 0; i < session->rings.n; i++)
        session->rings.rings[i]->is_gone = true;
}

int sampler_session_join(SamplerSession *session) {
    Sampler *sampler = session->sampler;
    SamplerSession **last = &sampler->sessions;
    int r = session_build_events(session);

    for (size_t i = 0; r == 0 && sampler->loop && i < session->rings.n; i++)
        r = watch_ring(session->rings.rings[i]);
    if (r < 0)
        return r;
    sampler_mark_lost_cpus(session);
    while (*last)
        last = &(*last)->next;
    *last = session;
    if (own_is_for(sampler, &session->config) && sampler->on_follow)
        (void)sampler->on_follow(sampler->follow_userdata);
    data_update(sampler);
    return 0;
}

int sampler_add(Sampler *sampler, const SessionConfig *config, SamplerSession **ret) {
    SamplerSession *session;
    int r = sampler_session_prepare(sampler, config, &session);

    if (r < 0)
        return r;
    r = sampler_session_open(session);
    if (r == 0)
        r = sampler_session_join(session);
    if (r < 0) {
        sampler_session_free(session, true);
        return r;
    }
    *ret = session;
    return 0;
}

SamplerSession *sampler_remove(SamplerSession *session) {
    SamplerSession **at;
    Sampler *sampler;

    if (!session)
        return NULL;
    sampler = session->sampler;
    for (at = &sampler->sessions; *at != session; at = &(*at)->next)
        ;
    *at = session->next;
    group_unwatch(session);
    opening_close(session);
    data_update(sampler);
    return NULL;
}

void sampler_sweep_while_waiting(Sampler *sampler, bool sweep) {
    keeper_set_wait(sampler->options.keeper, sweep ? sampler->options.on_wait : NULL,
                    sampler->options.userdata);
}

void sampler_forget_rest(Sampler *sampler) {
    adopt_forget(sampler);
    data_update(sampler);
}

int counter_control(const Counter *counter, unsigned long request) {
    return ioctl(counter->fd, request, 0) < 0 ? -errno : 0;
}

static int sampler_session_control(SamplerSession *session, unsigned long request) {
    int first_error = 0;

    for (size_t i = 0; i < session->rings.n; i++) {
        const CpuRing *ring = session->rings.rings[i];

        for (size_t k = 0; k < ring->n_counters; k++) {
            int r = counter_control(&ring->counters[k], request);

            first_error = first_error < 0 ? first_error : r;
        }
    }
    return first_error;
}

int sampler_enable(SamplerSession *session) {
    session->is_enabled = true;
    return sampler_session_control(session, PERF_EVENT_IOC_ENABLE);
}

int sampler_disable(SamplerSession *session) {
    session->is_enabled = false;
    return sampler_session_control(session, PERF_EVENT_IOC_DISABLE);
}

void sampler_set_userdata(SamplerSession *session, void *userdata) {
    session->userdata = userdata;
}

void *sampler_userdata(const SamplerSession *session) {
    return session->userdata;
}

bool sampler_was_taken_over(const SamplerSession *session) {
    return session->was_taken_over;
}

const PdEvents *sampler_events(const SamplerSession *session) {
    return session->events;
}

const PdEvent *sampler_side_band_event(const Sampler *sampler) {
    return pd_events_at(sampler->side_band_events, 0);
}

unsigned sampler_generation(const SamplerSession *session) {
    return session->generation;
}

Bytes sampler_tracing(const SamplerSession *session) {
    return buffer_bytes(&session->plan.tracing);
}

uint64_t sampler_frequency(const SamplerSession *session) {
    return session->plan.hz;
}

const PlanNotes *sampler_notes(const SamplerSession *session) {
    return &session->notes;
}

const char *sampler_describe(const SamplerSession *session) {
    return session->plan.description;
}

static bool sampler_is_recent(uint64_t then_ns) {
    return then_ns > 0 && clock_monotonic_ns() - then_ns < RECENT_SEC * NS_PER_SECOND;
}

unsigned sampler_degraded(const SamplerSession *session) {
    return session->degraded | own_degraded(session) |
           (group_is_absent(session) ? DEGRADED_ABSENT_GROUP : 0) |
           (sampler_is_recent(session->lost_ns) ? DEGRADED_LOST : 0) |
           (sampler_is_recent(session->throttled_ns) ? DEGRADED_THROTTLED : 0);
}

size_t sampler_n_cpus(const SamplerSession *session) {
    return session->rings.n;
}

bool sampler_has_cpu(const SamplerSession *session, unsigned cpu) {
    return ring_set_find(&session->rings, cpu) != NULL;
}

bool sampler_misses_cpu(const SamplerSession *session, unsigned cpu) {
    return session_wants_cpu(session, cpu) && cpu_list_has(&session->sampler->online, cpu) &&
           !sampler_has_cpu(session, cpu);
}

SamplerCounts sampler_shared_counts(const Sampler *sampler) {
    return sampler->counts;
}

SamplerCounts sampler_counts(const SamplerSession *session) {
    const SamplerCounts *all = &session->sampler->counts;
    SamplerCounts counts = session->counts;

    counts.side_band_bytes = all->side_band_bytes;
    counts.side_band_lost = all->side_band_lost;
    counts.data_lost = all->data_lost;
    counts.sweeps = all->sweeps;
    counts.drain_ns = all->drain_ns;
    return counts;
}
