/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/follow/hotplug.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/netlink.h>

#include "capture/follow/data-map.h"
#include "capture/follow/group.h"
#include "capture/follow/rate.h"
#include "capture/follow/watch-ring.h"
#include "capture/open/adopt.h"
#include "capture/open/event-table.h"
#include "capture/open/open-ring.h"
#include "capture/open/thread-list.h"
#include "capture/plan/degraded-reason.h"
#include "capture/ring/loss.h"
#include "capture/sweep/sweep.h"
#include "util/log.h"

/*
 * CPUs that come and go. An event on a CPU that went away never samples again, and the kernel does
 * not report it: its descriptor does not hang up, and enabling it does not fail. So we listen to
 * the kernel's messages about devices, which also report a CPU that was gone only for a moment, and
 * read the list of CPUs every few seconds for containers without such messages. A suspend switches
 * all CPUs but one off and on while nothing runs, so after one we look whether time passes for the
 * events of each CPU. The rings of a CPU that went are drained, then its events are closed; on a
 * CPU that came side-band is opened first, then the events of each session.
 *
 * This happens on the main thread, between two sweeps: the events of one CPU are few, and those of
 * a control group that was replaced are one for each event and CPU. Through the keeper an event
 * with a ring of 512K takes 0.1 ms to open and 0.04 ms to close, so 256 CPUs take some 35 ms for
 * each event of the session; the last one of a tracepoint takes some 35 ms to close, since the
 * kernel waits for every CPU. Rings hold seconds.
 */

enum {
    UEVENT_BYTES_MAX = 8192,
    RETRIES_AT_ONCE = 3, /* on a CPU that refuses, one a tick */
    RETRY_TICKS = 32,    /* between two later retries */
};

static void hotplug_mark_gone(RingSet *set, unsigned cpu) {
    CpuRing *ring = ring_set_find(set, cpu);

    if (ring)
        ring->is_gone = true;
}

static bool hotplug_is_gone(const CpuRing *ring) {
    return ring->is_gone || !cpu_list_has(&ring->set->sampler->online, ring->cpu);
}

static bool hotplug_any_gone(const RingSet *set) {
    for (size_t i = 0; i < set->n; i++)
        if (hotplug_is_gone(set->rings[i]))
            return true;
    return false;
}

bool hotplug_find_dead(Sampler *sampler) {
    /* Events of processes outlive a CPU. */
    if (sampler_follows_processes(sampler))
        return false;
    adopt_mark_dead(sampler, &sampler->side_band);
    adopt_mark_dead(sampler, &sampler->data);
    for (SamplerSession *s = sampler->sessions; s; s = s->next)
        adopt_mark_dead(sampler, &s->rings);
    if (!hotplug_any_gone(&sampler->side_band))
        return false;
    sampler->n_offline++;
    return true;
}

/* The message is "offline@/devices/system/cpu/cpu1", a NUL, and the same as variables. After
 * hibernation a CPU that was away has only "online@". */
static void hotplug_read_uevent(Sampler *sampler, const char *text) {
    unsigned cpu;

    /* Events of processes outlive a CPU. */
    if (sampler_follows_processes(sampler))
        return;
    if (sscanf(text, "online@/devices/system/cpu/cpu%u", &cpu) == 1) {
        const CpuRing *ring = ring_set_find(&sampler->side_band, cpu);

        if (ring && !ring->is_gone)
            (void)hotplug_find_dead(sampler);
        return;
    }
    if (sscanf(text, "offline@/devices/system/cpu/cpu%u", &cpu) != 1)
        return;
    sampler->n_offline++;
    hotplug_mark_gone(&sampler->side_band, cpu);
    hotplug_mark_gone(&sampler->data, cpu);
    for (SamplerSession *s = sampler->sessions; s; s = s->next)
        hotplug_mark_gone(&s->rings, cpu);
}

static void hotplug_read_uevents(Sampler *sampler) {
    char text[UEVENT_BYTES_MAX];
    struct sockaddr_nl from;
    socklen_t length = sizeof(from);

    while (sampler->uevent_fd >= 0) {
        ssize_t n = recvfrom(sampler->uevent_fd, text, sizeof(text) - 1, MSG_DONTWAIT,
                             (struct sockaddr *)&from, &length);

        if (n < 0 && (errno == ENOBUFS || errno == EINTR))
            continue;
        if (n <= 0)
            return;
        text[n] = '\0';
        /* Any user may send to the group from a namespace of his own; the kernel's port is 0. */
        if (length == sizeof(from) && from.nl_pid == 0)
            hotplug_read_uevent(sampler, text);
        length = sizeof(from);
    }
}

static bool hotplug_some_gone(const Sampler *sampler) {
    bool gone = hotplug_any_gone(&sampler->side_band) || hotplug_any_gone(&sampler->data);

    for (const SamplerSession *s = sampler->sessions; !gone && s; s = s->next)
        gone = hotplug_any_gone(&s->rings);
    return gone;
}

static bool hotplug_is_worth_a_try(const Sampler *sampler, unsigned n_retries) {
    return n_retries < RETRIES_AT_ONCE || sampler->ticks % RETRY_TICKS == 0;
}

static bool hotplug_lacks_side_band(const Sampler *sampler) {
    for (size_t i = 0; i < sampler->online.n; i++)
        if (!ring_set_find(&sampler->side_band, sampler->online.cpus[i]))
            return true;
    return false;
}

static bool hotplug_side_band_is_due(const Sampler *sampler) {
    return hotplug_is_worth_a_try(sampler, sampler->n_retries) && hotplug_lacks_side_band(sampler);
}

static bool hotplug_session_is_due(const SamplerSession *session) {
    return hotplug_is_worth_a_try(session->sampler, session->n_retries) &&
           !session_lacks_group(session) && session_lacks_cpu(session, true);
}

static bool hotplug_some_lacking(const Sampler *sampler) {
    bool lacking = hotplug_side_band_is_due(sampler);

    for (const SamplerSession *s = sampler->sessions; !lacking && s; s = s->next)
        lacking = hotplug_session_is_due(s);
    return lacking;
}

bool hotplug_is_settled(const Sampler *sampler) {
    bool is_settled = !hotplug_some_gone(sampler) && !hotplug_lacks_side_band(sampler);

    for (const SamplerSession *s = sampler->sessions; is_settled && s; s = s->next)
        is_settled = !session_lacks_cpu(s, true);
    return is_settled;
}

/* Returns the text of the kernel: usually it is compared only, because nothing has changed. */
static int hotplug_read_online_text(Sampler *sampler, char *ret, size_t size) {
    ssize_t n;

    if (sampler->online_fd < 0)
        sampler->online_fd = open(sampler->cpus_path, O_RDONLY | O_CLOEXEC);
    n = sampler->online_fd < 0 ? -1 : pread(sampler->online_fd, ret, size, 0);
    if (n < 0)
        return -errno;
    if (n == 0 || (size_t)n == size)
        return -EBADMSG;
    ret[ret[n - 1] == '\n' ? n - 1 : n] = '\0';
    return 0;
}

/* Returns true if the list has changed. */
static bool hotplug_read_online(Sampler *sampler) {
    char text[sizeof(sampler->online_text)];
    CpuList online = {};
    bool same;
    int r = hotplug_read_online_text(sampler, text, sizeof(text));

    if (r == 0 && strcmp(text, sampler->online_text) == 0)
        return false;
    if (r == 0)
        r = cpu_list_parse(text, &online);
    if (r < 0 || online.n == 0) {
        log_debug("Failed to read '%s', using the previous list", sampler->cpus_path);
        cpu_list_done(&online);
        return false;
    }
    memcpy(sampler->online_text, text, sizeof(text));
    same = cpu_list_equal(&online, &sampler->online);
    cpu_list_done(&sampler->online);
    sampler->online = online;
    if (same)
        return false;
    sampler->n_retries = 0;
    for (SamplerSession *s = sampler->sessions; s; s = s->next)
        s->n_retries = 0;
    return true;
}

bool hotplug_is_due(Sampler *sampler) {
    bool groups_changed = groups_refresh(sampler);

    hotplug_read_uevents(sampler);
    return groups_changed || hotplug_read_online(sampler) || hotplug_some_gone(sampler) ||
           hotplug_some_lacking(sampler);
}

/* Returns the number of rings that it removed. */
static unsigned hotplug_remove_gone(RingSet *set) {
    unsigned n = 0;

    for (size_t i = set->n; i-- > 0;) {
        CpuRing *ring = set->rings[i];

        if (!hotplug_is_gone(ring))
            continue;
        /* Losses are found by ids, which go with the counters. */
        for (size_t k = 0; ring->set->session && k < ring->n_counters; k++) {
            Counter *counter = &ring->counters[k];

            loss_read(ring, counter);
            set->counts.lost += counter->lost - MIN(counter->lost, counter->reported);
        }
        ring_set_remove(set, ring, true);
        n++;
    }
    return n;
}

/* Rings of side-band, which is on every CPU. */
typedef struct Changes {
    unsigned closed, opened;
} Changes;

/* A CPU that is away writes nothing more, so one whole sweep empties its rings. */
static int hotplug_drain_all(Sampler *sampler, const SamplerSinks *sinks) {
    int r = sampler_is_sweeping(sampler) ? 0 : 1;

    while (r == 0)
        r = sampler_sweep(sampler, UINT64_MAX, sinks);
    if (r > 0)
        do
            r = sampler_sweep(sampler, UINT64_MAX, sinks);
        while (r == 0);
    return MIN(r, 0);
}

static int hotplug_close_gone(Sampler *sampler, const SamplerSinks *sinks, Changes *changes) {
    int r = hotplug_drain_all(sampler, sinks);

    if (r < 0)
        return r;
    changes->closed = hotplug_remove_gone(&sampler->side_band);
    (void)hotplug_remove_gone(&sampler->data);
    for (SamplerSession *s = sampler->sessions; s; s = s->next)
        s->has_changed |= hotplug_remove_gone(&s->rings) > 0;
    return 0;
}

/* A failure here and below is logged and tried again later: recording goes on with the other
 * CPUs. */
static void hotplug_open_side_bands(Sampler *sampler, Changes *changes) {
    if (!hotplug_side_band_is_due(sampler))
        return;
    sampler->n_retries++;
    for (size_t i = 0; i < sampler->online.n; i++) {
        unsigned cpu = sampler->online.cpus[i];

        if (!ring_set_find(&sampler->side_band, cpu) && open_ring(&sampler->side_band, cpu) > 0) {
            changes->opened++;
            (void)watch_ring(ring_set_find(&sampler->side_band, cpu));
        }
    }
    data_open_missing(sampler);
}

static int hotplug_open_one(SamplerSession *session, unsigned cpu) {
    int r = open_ring(&session->rings, cpu);
    CpuRing *ring = r > 0 ? ring_set_find(&session->rings, cpu) : NULL;

    if (!ring)
        return r;
    ring->is_new = true;
    return watch_ring(ring);
}

/* Opens rings on CPUs that have side-band, or are about to have it; they do not sample yet. */
static void hotplug_open_missing(SamplerSession *session) {
    const Sampler *sampler = session->sampler;
    const CpuList *online = &sampler->online;

    if (!hotplug_session_is_due(session))
        return;
    session->n_retries++;
    if (plan_has_threads(&session->config) && thread_list_read(session) < 0)
        return;
    for (size_t i = 0; i < online->n; i++) {
        unsigned cpu = online->cpus[i];

        if (session_wants_cpu(session, cpu) && !ring_set_find(&session->rings, cpu) &&
            (ring_set_find(&sampler->side_band, cpu) || hotplug_side_band_is_due(sampler)))
            (void)hotplug_open_one(session, cpu);
    }
    group_opened(session);
}

/* Without side-band, samples could not be resolved. */
static void hotplug_enable_new(SamplerSession *session) {
    RingSet *set = &session->rings;

    for (size_t i = set->n; i-- > 0;) {
        CpuRing *ring = set->rings[i];

        if (!ring->is_new)
            continue;
        ring->is_new = false;
        if (!ring_set_find(&session->sampler->side_band, ring->cpu)) {
            ring_set_remove(set, ring, true);
            continue;
        }
        for (size_t k = 0; session->is_enabled && k < ring->n_counters; k++)
            (void)counter_control(&ring->counters[k], PERF_EVENT_IOC_ENABLE);
        session->has_changed = true;
    }
}

void hotplug_check_partial(SamplerSession *session) {
    bool partial = !session_lacks_group(session) && session_lacks_cpu(session, false);

    session->degraded &= ~(unsigned)(DEGRADED_PARTIAL_CPUS | DEGRADED_NO_CPUS);
    if (!partial) {
        session->logged_partial = false;
        return;
    }
    session->degraded |= session->rings.n > 0 ? DEGRADED_PARTIAL_CPUS : DEGRADED_NO_CPUS;
    if (!session->logged_partial && session->rings.n > 0)
        log_warning(0,
                    "Session '%s' samples on %zu CPUs only, the others that it is meant for are "
                    "offline or lack its events, see CPUs= and '%s'",
                    session->config.name, session->rings.n, session->sampler->cpus_path);
    session->logged_partial = true;
}

/* Returns 1 if side-band changed, whose ids are in the tables of all sessions; 2 if only sessions
 * changed; 0 if nothing did. */
static int hotplug_rebuild(Sampler *sampler, bool all) {
    int r = all ? event_table_of_sampler(sampler) : 0, result = all ? 1 : 0;

    for (SamplerSession *s = sampler->sessions; r == 0 && s; s = s->next) {
        if (!all && !s->has_changed)
            continue;
        s->has_changed = false;
        r = event_table_of_session(s);
        s->generation++;
        result = all ? 1 : 2;
    }
    return r < 0 ? r : result;
}

static void hotplug_log_changes(const Sampler *sampler, const Changes *changes) {
    char closed[32] = "", opened[32] = "";

    if (changes->closed + changes->opened == 0)
        return;
    if (changes->closed > 0)
        snprintf(closed, sizeof(closed), "%u went%s", changes->closed, changes->opened ? ", " : "");
    if (changes->opened > 0)
        snprintf(opened, sizeof(opened), "%u came", changes->opened);
    log_struct(LOG_LEVEL_NOTICE, 0, LOG_FIELDS({"PROFD_EVENT", "cpus-changed"}),
               "CPUs came or went: %s%s, %zu are sampled now", closed, opened,
               sampler->side_band.n);
}

int sampler_refresh_cpus(Sampler *sampler, const SamplerSinks *sinks) {
    Changes changes = {};
    int r = 0;

    hotplug_read_uevents(sampler);
    (void)hotplug_read_online(sampler);
    if (hotplug_some_gone(sampler))
        r = hotplug_close_gone(sampler, sinks, &changes);
    if (r < 0)
        return r;
    rate_watch(sampler);
    /* Large rings take long to open. Between the opening of side-band and the sweep that follows
     * there must be little time: the samples of that time come before /proc is read again. */
    for (SamplerSession *s = sampler->sessions; s; s = s->next)
        hotplug_open_missing(s);
    hotplug_open_side_bands(sampler, &changes);
    if (changes.opened > 0 && sinks->on_side_band_open)
        r = sinks->on_side_band_open(sinks->userdata);
    if (r < 0)
        return r;
    for (SamplerSession *s = sampler->sessions; s; s = s->next) {
        hotplug_enable_new(s);
        hotplug_check_partial(s);
    }
    hotplug_log_changes(sampler, &changes);
    return hotplug_rebuild(sampler, changes.closed + changes.opened > 0);
}
