/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/sampler/sampler.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture/follow/data-map.h"
#include "capture/follow/group-watch.h"
#include "capture/open/adopt.h"
#include "capture/open/event-table.h"
#include "capture/open/open-ring.h"
#include "capture/open/side-band.h"
#include "capture/open/target.h"
#include "capture/plan/limit.h"
#include "capture/sampler/closing.h"
#include "capture/sampler/sampler-session.h"
#include "util/clock.h"
#include "util/log.h"

/* The sampler: its start, its list of sessions, and what it reports about them. */

enum { RECENT_SEC = 60 }; /* a loss or a throttle makes a session degraded for so long */

static const char online_path[] = "/sys/devices/system/cpu/online";
static const char present_path[] = "/sys/devices/system/cpu/present";

CheckOptions sampler_check_options(const Sampler *sampler, const SamplerSession *old) {
    return (CheckOptions){
        .keeper = sampler->options.keeper,
        .online = &sampler->online,
        .max_hz = limit_frequency(sampler->options.max_frequency_hz, sampler->max_rate_hz, 0),
        .buffer_total_bytes = sampler->options.buffer_total_bytes,
        .keeper_pid = sampler_follows_processes(sampler) ? (int32_t)sampler->options.keeper_pid : 0,
        .no_lost = !(sampler->side_band_attr.read_format & PD_FORMAT_LOST),
        .no_cgroup = !(sampler->side_band_attr.flags & PD_ATTR_CGROUP),
        .used_descriptors =
            sampler_descriptors(sampler) - (old ? ring_set_counters(&old->rings) : 0)};
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

/* Leaves most of what may be locked to the sessions. */
static void sampler_limit_side_band(Sampler *sampler) {
    uint64_t each = limit_locked_bytes() / sampler->online.n;

    sampler->side_band_bytes = limit_ring_bytes(SIDE_BAND_RING_BYTES, 1, each / 4);
    sampler->data_bytes = limit_ring_bytes(SIDE_BAND_RING_BYTES, 1, each / 8);
}

/* A process may be followed on CPUs that are away; nothing must be opened when they come. */
static int sampler_prepare_processes(Sampler *sampler) {
    int r = sampler_read_cpus(sampler, present_path);

    sampler->side_band.ops = sampler->data.ops = &process_target;
    if (r == 0)
        sampler_limit_side_band(sampler);
    return r;
}

static int sampler_open_all_side_band(Sampler *sampler) {
    int r = side_band_settle(sampler, sampler->online.cpus[0]);

    if (r > 0)
        r = sampler_prepare_processes(sampler);
    if (r == 0)
        r = sampler_check_descriptors("profd", sampler_descriptors(sampler) + sampler->online.n);
    if (r == 0)
        r = adopt_rings(sampler, &sampler->side_band);
    if (r == 0)
        r = adopt_rings(sampler, &sampler->data);
    for (size_t i = 0; r >= 0 && i < sampler->online.n; i++)
        if (!ring_set_find(&sampler->side_band, sampler->online.cpus[i]))
            r = open_ring(&sampler->side_band, sampler->online.cpus[i]);
    return r < 0 ? r : event_table_of_sampler(sampler);
}

static RingSet sampler_shared_set(Sampler *sampler, TagKind kind) {
    return (RingSet){
        .kind = kind, .ops = &cpu_target, .keeper = sampler->options.keeper, .sampler = sampler};
}

int sampler_new(const SamplerOptions *options, Sampler **ret) {
    _cleanup_(sampler_freep) Sampler *sampler = calloc(1, sizeof(*sampler));
    int r;

    if (!sampler)
        return -ENOMEM;
    sampler->options = *options;
    sampler->uevent_fd = sampler->online_fd = sampler->groups_fd = sampler->groups_watch = -1;
    sampler->max_rate_hz = limit_sample_rate();
    sampler->side_band = sampler_shared_set(sampler, TAG_SIDE_BAND);
    sampler->data = sampler_shared_set(sampler, TAG_DATA);
    sampler->side_band_bytes = sampler->data_bytes = SIDE_BAND_RING_BYTES;
    r = scratch_init(&sampler->scratch, SWEEP_BATCH_BYTES);
    if (r == 0)
        r = sampler_read_cpus(sampler, online_path);
    if (r == 0 && options->locking_is_limited)
        sampler_limit_side_band(sampler);
    if (r == 0)
        r = adopt_list(sampler);
    if (r == 0)
        r = sampler_open_all_side_band(sampler);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(sampler);
    return 0;
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
    adopt_leave(sampler);
    pd_events_free(sampler->side_band_events);
    cpu_list_done(&sampler->online);
    closep(&sampler->online_fd);
    closep(&sampler->groups_fd);
    free(sampler->groups);
    scratch_done(&sampler->scratch);
    free(sampler);
    return NULL;
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
    closing_begin(session);
    data_update(sampler);
    return NULL;
}

void sampler_set_lacks_tables(Sampler *sampler, bool lacks) {
    sampler->lacks_tables = lacks;
}

void sampler_forget_rest(Sampler *sampler) {
    adopt_forget(sampler);
    data_update(sampler);
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

const PdEvents *sampler_taken_events(const SamplerSession *session) {
    return session->taken ?: session->events;
}

bool sampler_is_unwound(const SamplerSession *session) {
    return session->taken != NULL;
}

void *sampler_take_arena(SamplerSession *session, size_t *ret_size) {
    *ret_size = session->arena.size;
    return TAKE_PTR(session->arena.memory);
}

uint32_t sampler_stack_bytes(const SamplerSession *session) {
    return (uint32_t)plan_stack_bytes(&session->plan);
}

CallGraph sampler_call_graph(const SamplerSession *session) {
    return plan_call_graph(&session->plan);
}

void sampler_put_call_graph(const SamplerSession *session, Buffer *out) {
    plan_put_call_graph(&session->plan, out);
}

void sampler_put_call_graph_reason(const SamplerSession *session, Buffer *out) {
    plan_put_call_graph_reason(&session->plan, out);
}

SamplerRings sampler_rings(const SamplerSession *session) {
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < session->rings.n; i++)
        least = MIN(least, session->rings.rings[i]->ring.size);
    return (SamplerRings){
        .bytes = ring_set_bytes(&session->rings),
        .span_ms = session->rings.n > 0 ? limit_ring_span_ms(least, session->bytes_per_sec) : 0};
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

static unsigned sampler_degraded_by_target(const SamplerSession *session) {
    if (!session->rings.ops->inherits)
        return 0;
    return DEGRADED_OWN_PROCESSES | (session->sampler->is_full ? DEGRADED_PARTIAL_PROCESSES : 0);
}

unsigned sampler_degraded(const SamplerSession *session) {
    return session->degraded | sampler_degraded_by_target(session) |
           (session_lacks_group(session) ? DEGRADED_ABSENT_GROUP : 0) |
           (sampler_is_recent(session->rings.counts.lost_at_ns) ? DEGRADED_LOST : 0) |
           (sampler_is_recent(session->rings.counts.throttled_at_ns) ? DEGRADED_THROTTLED : 0);
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

bool sampler_sees_kernel(const Sampler *sampler) {
    return !(sampler->side_band_attr.flags & PD_ATTR_EXCLUDE_KERNEL);
}

bool sampler_records_namespaces(const Sampler *sampler) {
    return sampler->records_namespaces;
}

bool sampler_records_data(const Sampler *sampler) {
    return sampler->records_data;
}

bool sampler_takes_stacks(const SamplerSession *session) {
    return plan_takes_stacks(&session->plan);
}

void sampler_watch_follow(Sampler *sampler, LoopCallback on_wanted, void *userdata) {
    sampler->on_follow = on_wanted;
    sampler->follow_userdata = userdata;
}

SamplerCounts sampler_shared_counts(const Sampler *sampler) {
    return (SamplerCounts){.side_band_bytes =
                               sampler->side_band.counts.bytes + sampler->data.counts.bytes,
                           .side_band_lost = sampler->side_band.counts.lost,
                           .data_lost = sampler->data.counts.lost,
                           .sweeps = sampler->n_sweeps,
                           .drain_ns = sampler->drain_ns};
}

SamplerCounts sampler_counts(const SamplerSession *session) {
    SamplerCounts counts = sampler_shared_counts(session->sampler);

    counts.bytes = session->rings.counts.bytes;
    counts.lost = session->rings.counts.lost;
    counts.throttles = session->rings.counts.throttles;
    counts.throttled_ns = session->rings.counts.throttled_ns;
    return counts;
}
