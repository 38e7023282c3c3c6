/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>

#include "capture/sampler/limit.h"
#include "capture/sampler/sampler-private.h"
#include "util/array.h"
#include "util/log.h"
#include "util/parse.h"

/*
 * Opening, CPU by CPU, all of it through the keeper. The first event that a session has on a CPU
 * brings the ring, the others write into it. With processes as the target each of their threads
 * has an event on each CPU, inherited by what it starts, since the kernel has no ring for an event
 * that is inherited and follows its thread over CPUs. A CPU may leave while we open, which is no
 * failure. Namespaces, for which few ask, have an event of their own that writes into the ring of
 * side-band: so it may come at any time, and nothing that is recorded already is interrupted.
 */

enum { COUNT_SW_DUMMY = 9, TIDS_MAX = 4096 };

static PlanTarget sampler_open_side_band_target(const Sampler *sampler) {
    return (PlanTarget){.pid = sampler->is_own ? (int32_t)sampler->options.own_pid : -1};
}

static PdAttr sampler_open_side_band_attr(void) {
    return (PdAttr){
        .type = PD_TYPE_SOFTWARE,
        .config = COUNT_SW_DUMMY,
        .sample_period = 1,
        .sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_CPU,
        .read_format = PD_FORMAT_ID | PD_FORMAT_LOST | PD_FORMAT_TOTAL_TIME_ENABLED,
        .flags = PD_ATTR_WATERMARK | PD_ATTR_SAMPLE_ID_ALL | PD_ATTR_USE_CLOCKID | SIDE_BAND_TELLS,
        .wakeup_events = watermark(SIDE_BAND_RING_BYTES, SIDE_BAND_EIGHTHS),
        .clockid = CLOCK_MONOTONIC,
    };
}

static int sampler_open_try_side_band(Sampler *sampler, unsigned cpu) {
    return plan_try(sampler->options.keeper, &sampler->side_band_attr,
                    sampler_open_side_band_target(sampler), cpu);
}

static int sampler_open_settle_side_band(Sampler *sampler, unsigned cpu, PdAttr attr) {
    /* What came to the kernel last goes first. */
    /* clang-format off */
    static const struct { uint64_t flags, read_format; const char *since; } steps[] = {
        { 0,                                    0,              ""    },
        { 0,                                    PD_FORMAT_LOST, "6.0" },
        { PD_ATTR_CGROUP,                       0,              "5.7" },
        { PD_ATTR_KSYMBOL | PD_ATTR_BPF_EVENT,  0,              "5.1" },
    };
    /* clang-format on */
    int r = -EINVAL;

    sampler->side_band_attr = attr;
    for (size_t i = 0; r == -EINVAL && i < ARRAY_SIZE(steps); i++) {
        sampler->side_band_attr.flags &= ~steps[i].flags;
        sampler->side_band_attr.read_format &= ~steps[i].read_format;
        r = sampler_open_try_side_band(sampler, cpu);
        if (r == 0 && i > 0)
            log_notice("This kernel is older than %s, doing with what it tells of processes",
                       steps[i].since);
    }
    return r;
}

static bool sampler_open_is_refusal(int error) {
    return error == -EACCES || error == -EPERM;
}

static int sampler_open_settle_own(Sampler *sampler, unsigned cpu) {
    const uint64_t without_kernel = PD_ATTR_EXCLUDE_KERNEL | PD_ATTR_EXCLUDE_HV;
    PdAttr attr = sampler_open_side_band_attr();
    int r;

    attr.flags |= PD_ATTR_INHERIT;
    r = sampler_open_settle_side_band(sampler, cpu, attr);
    if (!sampler_open_is_refusal(r))
        return r;
    attr.flags |= without_kernel;
    return sampler_open_settle_side_band(sampler, cpu, attr);
}

/* What the keeper may not do for all it may do for its user. */
int open_settle_side_band(Sampler *sampler, unsigned cpu) {
    int r = sampler_open_settle_side_band(sampler, cpu, sampler_open_side_band_attr()), refused = r;

    if (!sampler_open_is_refusal(r) || sampler->options.own_pid == 0)
        return r < 0 ? limit_log_open_failure(r, NULL, "dummy", cpu) : 0;
    sampler->is_own = true;
    r = sampler_open_settle_own(sampler, cpu);
    if (r < 0)
        return limit_log_open_failure(sampler_open_is_refusal(r) ? refused : r, NULL, "dummy", cpu);
    limit_log_own(sampler_sees_kernel(sampler));
    return 0;
}

static int sampler_open_take_opened(CpuRing *ring, uint32_t slot, int fd, int32_t tid,
                                    unsigned event) {
    Counter *counter = array_grow(&ring->counters, &ring->n_counters);

    if (!counter) {
        close(fd);
        (void)keeper_close_event(ring->sampler->options.keeper, slot);
        return -ENOMEM;
    }
    *counter = (Counter){.slot = slot, .fd = fd, .tid = tid, .event = event};
    return ioctl(fd, PERF_EVENT_IOC_ID, &counter->id) < 0 ? -errno : 0;
}

/* The keeper's map of it counts too where memory is short, and ours may be the one too many. */
static int sampler_open_map_opened(CpuRing *ring, uint32_t slot, int fd, uint64_t bytes) {
    int r = ring_init(&ring->ring, fd, bytes);

    if (r == 0)
        return 0;
    close(fd);
    (void)keeper_close_event(ring->sampler->options.keeper, slot);
    ring->n_counters--;
    return r;
}

static int sampler_open_counter(CpuRing *ring, const KeeperEvent *event, unsigned index) {
    uint32_t slot;
    int fd, r = keeper_open_event(ring->sampler->options.keeper, event, &slot, &fd);

    if (r == 0)
        r = sampler_open_take_opened(ring, slot, fd, event->pid, index);
    return r < 0 || event->ring_bytes == 0
               ? r
               : sampler_open_map_opened(ring, slot, fd, event->ring_bytes);
}

static void sampler_open_fill_tag(const CpuRing *ring, unsigned event, KeeperEvent *ret) {
    const SamplerSession *session = ring->session;
    Tag tag = {.kind = ring->set->kind,
               .event = (uint16_t)event,
               .cpu = ring->cpu,
               .identity = session ? session->identity : 0,
               .group = session ? session->group.id : 0};

    if (session)
        memcpy(tag.name, session->config.name, strnlen(session->config.name, sizeof(tag.name) - 1));
    tag_encode(&tag, ret->tag);
}

/* The kernel counts ring memory against a limit of the user, and may have none left in one piece.
 */
static bool sampler_open_is_want_of_memory(int error) {
    return error == -EPERM || error == -ENOMEM || error == -ENOBUFS;
}

/* The event itself was opened without a ring before, so it is not that which is not permitted. */
static int sampler_open_log_failure(const CpuRing *ring, int error, const char *event) {
    const char *who = ring->session ? ring->session->config.name : NULL;

    if (!sampler_open_is_want_of_memory(error) || ring->n_counters > 0)
        return limit_log_open_failure(error, who, event, ring->cpu);
    return log_error(error,
                     "The kernel has no memory for even the smallest ring of CPU %u for %s, raise "
                     "LimitMEMLOCK= or kernel.perf_event_mlock_kb",
                     ring->cpu, who ?: "all sessions");
}

static PdAttr sampler_open_shared_attr(const CpuRing *ring, uint64_t ring_bytes) {
    bool is_data = ring->set->kind == TAG_DATA;
    PdAttr attr = is_data ? data_attr(ring->sampler) : ring->sampler->side_band_attr;

    attr.wakeup_events = watermark(ring_bytes, is_data ? SAMPLES_EIGHTHS : SIDE_BAND_EIGHTHS);
    return attr;
}

static int sampler_open_shared_ring(CpuRing *ring, KeeperEvent *event) {
    const Sampler *sampler = ring->sampler;
    uint64_t size = ring->set->kind == TAG_DATA ? sampler->data_bytes : sampler->side_band_bytes,
             wanted = size;
    int r;

    do {
        PdAttr attr = sampler_open_shared_attr(ring, size);

        event->ring_bytes = size;
        r = plan_encode(&attr, event);
        if (r == 0)
            r = sampler_open_counter(ring, event, SIDE_BAND_EVENT);
        size /= 2;
    } while (sampler_open_is_want_of_memory(r) && ring->n_counters == 0 &&
             size >= limit_ring_bytes_min());
    if (r == 0 && ring->ring.size < wanted)
        log_notice("The ring for what processes do has %" PRIu64
                   " bytes on CPU %u, the kernel gives no more, raise LimitMEMLOCK= or "
                   "kernel.perf_event_mlock_kb",
                   ring->ring.size, ring->cpu);
    return r;
}

/* One more event, which writes to the ring that is there; `pid` is a thread, or -1. */
static int sampler_open_beside(CpuRing *ring, PdAttr attr, int32_t pid, unsigned index) {
    KeeperEvent event = {.pid = pid,
                         .cpu = (int32_t)ring->cpu,
                         .leader_slot = KEEPER_NO_SLOT,
                         .output_slot = ring->counters[0].slot};
    int r;

    sampler_open_fill_tag(ring, index, &event);
    r = plan_encode(&attr, &event);
    return r == 0 ? sampler_open_counter(ring, &event, index) : r;
}

static int sampler_open_shared_of(CpuRing *ring, uint32_t tid) {
    int r = sampler_open_beside(ring, sampler_open_shared_attr(ring, ring->ring.size), (int32_t)tid,
                                SIDE_BAND_EVENT);

    return r == -ESRCH ? 0 : r;
}

/* With namespaces alone the kernel does not see that it is of side-band; COMM_EXEC tells nothing
 * where COMM is not asked for. */
PdAttr open_namespaces_attr(const Sampler *sampler) {
    PdAttr attr = sampler->side_band_attr;

    attr.flags = (attr.flags & ~SIDE_BAND_TELLS) | PD_ATTR_COMM_EXEC | PD_ATTR_NAMESPACES;
    return attr;
}

static int sampler_open_namespaces_on(CpuRing *ring) {
    PdAttr attr = open_namespaces_attr(ring->sampler);

    for (size_t i = 0; i < ring->n_counters; i++)
        if (ring->counters[i].event == NAMESPACES_EVENT)
            return 0;
    attr.wakeup_events = watermark(ring->ring.size, SIDE_BAND_EIGHTHS);
    return sampler_open_beside(ring, attr, -1, NAMESPACES_EVENT);
}

int open_namespaces(Sampler *sampler) {
    if (sampler->is_own || sampler->tells_namespaces)
        return 0;
    for (size_t i = 0; i < sampler->side_band.n; i++) {
        CpuRing *ring = sampler->side_band.rings[i];
        int r = sampler_open_namespaces_on(ring);

        if (r < 0 && r != -ENODEV)
            return limit_log_open_failure(r, NULL, "dummy", ring->cpu);
    }
    sampler->tells_namespaces = true;
    return 0;
}

bool sampler_tells_namespaces(const Sampler *sampler) {
    return sampler->tells_namespaces;
}

static int sampler_open_shared_on(Sampler *sampler, RingSet *set, CpuRing *ring,
                                  KeeperEvent *event) {
    int r;

    ring->is_own = sampler->is_own;
    ring->lost_by_records =
        sampler->is_own || !(sampler->side_band_attr.read_format & PD_FORMAT_LOST);
    sampler_open_fill_tag(ring, SIDE_BAND_EVENT, event);
    r = sampler_open_shared_ring(ring, event);
    if (r == 0 && set->kind == TAG_SIDE_BAND && sampler->tells_namespaces)
        r = sampler_open_namespaces_on(ring);
    if (r == 0 && sampler->is_own)
        r = own_begin(set, sampler);
    return r == 0 && sampler->is_own ? own_open(set, ring) : r;
}

int open_shared(Sampler *sampler, RingSet *set, unsigned cpu) {
    KeeperEvent event = {.pid = sampler_open_side_band_target(sampler).pid,
                         .cpu = (int32_t)cpu,
                         .leader_slot = KEEPER_NO_SLOT,
                         .output_slot = KEEPER_NO_SLOT};
    CpuRing *ring;
    int r = ring_set_add(set, sampler, cpu, &ring);

    if (r < 0)
        return r;
    r = sampler_open_shared_on(sampler, set, ring, &event);
    if (r == 0)
        return 1;
    if (r != -ENODEV)
        (void)sampler_open_log_failure(ring, r, "dummy");
    ring_set_remove(set, ring, true);
    return r == -ENODEV ? 0 : r;
}

static bool sampler_open_may_be_smaller(SamplerSession *session, int error) {
    uint64_t smaller = session->ring_bytes / 2;

    if (!sampler_open_is_want_of_memory(error) || smaller < limit_ring_bytes_min())
        return false;
    if (!(session->degraded & DEGRADED_SMALL_RINGS))
        log_warning(0,
                    "The kernel has no %" PRIu64
                    " bytes a CPU for the rings of session '%s', taking less, raise LimitMEMLOCK= "
                    "or kernel.perf_event_mlock_kb",
                    session->ring_bytes, session->config.name);
    session->degraded |= DEGRADED_SMALL_RINGS;
    session->ring_bytes = smaller;
    return true;
}

/* The kernel may have lowered its limit since the session was settled, and a CPU comes now. */
static PdAttr sampler_open_within_rate(SamplerSession *session, const PdAttr *attr) {
    uint64_t max_hz = session->sampler->max_rate_hz;
    PdAttr lowered = *attr;

    if ((attr->flags & PD_ATTR_FREQ) && max_hz > 0 && attr->sample_period > max_hz) {
        lowered.sample_period = max_hz;
        session->degraded |= DEGRADED_RATE_LOWERED;
    }
    return lowered;
}

static int sampler_open_planned(CpuRing *ring, unsigned index, int32_t pid, uint32_t leader_slot) {
    SamplerSession *session = ring->session;
    bool first = ring->n_counters == 0;
    KeeperEvent event = {.pid = pid,
                         .cpu = (int32_t)ring->cpu,
                         .cgroup = session->config.cgroup[0] ? session->group.path : NULL,
                         .leader_slot = leader_slot,
                         .output_slot = first ? KEEPER_NO_SLOT : ring->counters[0].slot};
    int r;

    if (atomic_load(&session->is_unwanted))
        return -ECANCELED;
    sampler_open_fill_tag(ring, index, &event);
    do {
        PdAttr *attr = &session->plan.events[index].attr, lowered;

        attr->flags |= PD_ATTR_WATERMARK;
        attr->wakeup_events = watermark(session->ring_bytes, SAMPLES_EIGHTHS);
        event.ring_bytes = first ? session->ring_bytes : 0;
        lowered = sampler_open_within_rate(session, attr);
        r = plan_encode(&lowered, &event);
        if (r == 0)
            r = sampler_open_counter(ring, &event, index);
    } while (first && ring->n_counters == 0 && sampler_open_may_be_smaller(session, r));
    if (r == 0 && first)
        ring->lost_by_records =
            ring->is_own || !(session->plan.events[index].attr.read_format & PD_FORMAT_LOST);
    return r;
}

/* Who follows processes goes on with the others. */
static int sampler_open_is_one_of_many(const CpuRing *ring, int32_t pid) {
    return ring->is_own && (uint32_t)pid != ring->sampler->options.own_pid;
}

/* All events of the session for one thread (-1: whatever runs) on the ring's CPU. */
static int sampler_open_target(CpuRing *ring, int32_t pid) {
    Plan *plan = &ring->session->plan;
    _cleanup_free_ uint32_t *slots = calloc(plan->n, sizeof(*slots));

    if (!slots)
        return -ENOMEM;
    for (size_t e = 0; e < plan->n; e++) {
        const PlanEvent *planned = &plan->events[e];
        uint32_t leader = KEEPER_NO_SLOT;
        int r;

        slots[e] = KEEPER_NO_SLOT;
        if (planned->leader != PLAN_NO_LEADER)
            leader = slots[planned->leader];
        if ((planned->cpus.n > 0 && !cpu_list_has(&planned->cpus, ring->cpu)) ||
            (planned->leader != PLAN_NO_LEADER && leader == KEEPER_NO_SLOT))
            continue;
        r = sampler_open_planned(ring, (unsigned)e, pid, leader);
        if (r == -ENOENT)
            continue;
        if (r < 0)
            return r == -ESRCH && pid >= 0 ? 0
                   : r == -ENODEV || r == -ECANCELED || sampler_open_is_one_of_many(ring, pid)
                       ? r
                       : sampler_open_log_failure(ring, r, planned->name);
        slots[e] = ring->counters[ring->n_counters - 1].slot;
    }
    return 0;
}

int open_thread(CpuRing *ring, uint32_t tid) {
    return ring->session ? sampler_open_target(ring, (int32_t)tid)
                         : sampler_open_shared_of(ring, tid);
}

static int sampler_open_own(SamplerSession *session, CpuRing *ring) {
    Sampler *sampler = session->sampler;
    int r = own_begin(&session->rings, sampler);

    if (r == 0)
        r = sampler_open_target(ring, (int32_t)sampler->options.own_pid);
    return r == 0 && ring->n_counters > 0 ? own_open(&session->rings, ring) : r;
}

static int sampler_open_targets(SamplerSession *session, CpuRing *ring) {
    int r = 0;

    if (ring->is_own)
        return sampler_open_own(session, ring);
    if (!plan_has_threads(&session->config))
        return sampler_open_target(ring, -1);
    for (size_t i = 0; r == 0 && i < session->n_tids; i++)
        r = sampler_open_target(ring, (int32_t)session->tids[i]);
    return r;
}

int open_session(SamplerSession *session, unsigned cpu) {
    CpuRing *ring;
    int r = ring_set_add(&session->rings, session->sampler, cpu, &ring);

    if (r < 0)
        return r;
    ring->is_own = own_is_for(session->sampler, &session->config);
    r = sampler_open_targets(session, ring);
    if (r == 0 && ring->n_counters > 0)
        return 1;
    ring_set_remove(&session->rings, ring, true);
    return r == -ENODEV ? 0 : r;
}

int open_read_tasks(uint32_t pid, size_t max, uint32_t **tids, size_t *n) {
    _cleanup_closedir_ DIR *tasks = NULL;
    char path[64];
    uint64_t tid;

    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", pid);
    tasks = opendir(path);
    if (!tasks)
        return errno == ENOENT ? -ESRCH : -errno;
    for (struct dirent *e; (e = readdir(tasks));) {
        uint32_t *to;

        if (parse_u64(e->d_name, &tid) < 0 || tid == 0 || tid > INT32_MAX)
            continue;
        if (*n >= max)
            return -E2BIG;
        to = array_grow(tids, n);
        if (!to)
            return -ENOMEM;
        *to = (uint32_t)tid;
    }
    return 0;
}

static int sampler_open_list_threads_of(SamplerSession *session, uint32_t pid) {
    int r = open_read_tasks(pid, TIDS_MAX, &session->tids, &session->n_tids);

    if (r == -E2BIG)
        return log_warning(r,
                           "Session '%s' has more than %d threads to sample, leaving out the "
                           "rest; a cgroup as the target has no such limit",
                           session->config.name, TIDS_MAX);
    if (r < 0 && r != -ENOMEM)
        return log_warning(r,
                           "Failed to list the threads of process %" PRIu32
                           " for session '%s', leaving it out; is it running, and /proc mounted "
                           "without hidepid?: %m",
                           pid, session->config.name);
    return r;
}

static int sampler_open_list_thread(SamplerSession *session, uint32_t tid) {
    uint32_t *to;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%" PRIu32, tid);
    if (access(path, F_OK) < 0)
        return log_warning(0, "Thread %" PRIu32 " of session '%s' does not run, leaving it out",
                           tid, session->config.name);
    to = array_grow(&session->tids, &session->n_tids);
    if (!to)
        return -ENOMEM;
    *to = tid;
    return 0;
}

int open_list_threads(SamplerSession *session) {
    int r = 0;

    session->n_tids = 0;
    for (uint32_t i = 0; i < session->config.n_pids; i++) {
        int k = sampler_open_list_threads_of(session, session->config.pids[i]);

        r = r < 0 ? r : k;
    }
    for (uint32_t i = 0; r == 0 && i < session->config.n_tids; i++)
        r = sampler_open_list_thread(session, session->config.tids[i]);
    return session->n_tids > 0 || !plan_has_threads(&session->config) ? 0 : r < 0 ? r : -ESRCH;
}
