/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/open/open-ring.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "capture/open/side-band.h"
#include "capture/plan/degraded-reason.h"
#include "capture/plan/limit.h"
#include "util/array.h"
#include "util/log.h"

/*
 * Opens events, CPU by CPU, through the keeper. The first event of a set on a CPU brings the ring,
 * and the others write into it. For processes each of their threads has an event on each CPU, which
 * the threads and processes that it starts inherit: the kernel has no ring for an event that is
 * inherited and follows its thread over CPUs. A CPU may go while we open, which is no failure.
 * Namespaces, for which few sessions ask, have an event of their own that writes into the ring of
 * side-band, so it can be added at any time without an interruption.
 */

static int open_ring_take_opened(CpuRing *ring, uint32_t slot, int fd, const PdAttr *attr,
                                 const KeeperEvent *event, unsigned index) {
    Counter *counter = array_grow(&ring->counters, &ring->n_counters);

    if (!counter) {
        close(fd);
        (void)keeper_close_event(ring->set->keeper, slot);
        return -ENOMEM;
    }
    *counter = (Counter){.slot = slot,
                         .fd = fd,
                         .tid = event->pid,
                         .event = index,
                         .read_format = attr->read_format};
    return ioctl(fd, PERF_EVENT_IOC_ID, &counter->id) < 0 ? -errno : 0;
}

/* The keeper's mapping uses memory too, so ours may fail where memory is short. */
static int open_ring_map_opened(CpuRing *ring, uint32_t slot, int fd, uint64_t bytes) {
    int r = ring_init(&ring->ring, fd, bytes);

    if (r == 0)
        return 0;
    close(fd);
    (void)keeper_close_event(ring->set->keeper, slot);
    ring->n_counters--;
    return r;
}

static int open_ring_counter(CpuRing *ring, const PdAttr *attr, KeeperEvent *event,
                             unsigned index) {
    uint32_t slot;
    int fd, r = plan_encode(attr, event);

    if (r == 0)
        r = keeper_open_event(ring->set->keeper, event, &slot, &fd);
    if (r == 0)
        r = open_ring_take_opened(ring, slot, fd, attr, event, index);
    return r < 0 || event->ring_bytes == 0
               ? r
               : open_ring_map_opened(ring, slot, fd, event->ring_bytes);
}

static void open_ring_fill_tag(const CpuRing *ring, unsigned event, KeeperEvent *ret) {
    const SamplerSession *session = ring->set->session;
    Tag tag = {.kind = ring->set->kind,
               .event = (uint16_t)event,
               .cpu = ring->cpu,
               .identity = session ? session->identity : 0,
               .group = session ? session->group.id : 0};

    if (session)
        memcpy(tag.name, session->config.name, strnlen(session->config.name, sizeof(tag.name) - 1));
    tag_encode(&tag, ret->tag);
}

/* The kernel counts ring memory against a limit of the user, and may lack contiguous memory. */
static bool open_ring_lacks_memory(int error) {
    return error == -EPERM || error == -ENOMEM || error == -ENOBUFS;
}

/* -ENOBUFS is from the keeper, which bounds all rings whatever the recorder wants; the kernel's
 * limit is another one. */
static const char *open_ring_remedy(int error) {
    return error == -ENOBUFS
               ? "profd never gives all rings together more than 1 GiB, or than a sixteenth of the "
                 "host's memory if that is more: lower BufferSize= or MaxBufferTotal="
               : "raise LimitMEMLOCK= or kernel.perf_event_mlock_kb";
}

/* The same event was opened before without a ring, so -EPERM is about memory. */
static int open_ring_log_failure(const CpuRing *ring, int error, const char *event) {
    const char *who = ring->set->session ? ring->set->session->config.name : NULL;

    if (!open_ring_lacks_memory(error) || ring->n_counters > 0)
        return limit_log_open_failure(error, who, event, ring->cpu);
    return log_error(error, "There is no memory for even the smallest ring of CPU %u for %s, %s",
                     ring->cpu, who ?: "all sessions", open_ring_remedy(error));
}

static PdAttr open_ring_shared_attr(const CpuRing *ring, uint64_t ring_bytes) {
    bool is_data = ring->set->kind == TAG_DATA;
    PdAttr attr =
        is_data ? side_band_data_attr(ring->set->sampler) : ring->set->sampler->side_band_attr;

    attr.wakeup_events = watermark(ring_bytes, is_data ? SAMPLES_EIGHTHS : SIDE_BAND_EIGHTHS);
    return attr;
}

static int open_ring_shared_ring(CpuRing *ring, KeeperEvent *event) {
    const Sampler *sampler = ring->set->sampler;
    uint64_t size = ring->set->kind == TAG_DATA ? sampler->data_bytes : sampler->side_band_bytes,
             wanted = size;
    int r, refusal = 0;

    do {
        PdAttr attr = open_ring_shared_attr(ring, size);

        event->ring_bytes = size;
        r = open_ring_counter(ring, &attr, event, SIDE_BAND_EVENT);
        refusal = r < 0 ? r : refusal;
        size /= 2;
    } while (open_ring_lacks_memory(r) && ring->n_counters == 0 && size >= limit_ring_bytes_min());
    if (r == 0 && ring->ring.size < wanted)
        log_notice("The ring for records of processes has %" PRIu64
                   " bytes on CPU %u, there are no more, %s",
                   ring->ring.size, ring->cpu, open_ring_remedy(refusal));
    return r;
}

/* Opens one more event, which writes to the existing ring; `pid` is a thread, or -1. */
static int open_ring_beside(CpuRing *ring, PdAttr attr, int32_t pid, unsigned index) {
    KeeperEvent event = {.pid = pid,
                         .cpu = (int32_t)ring->cpu,
                         .leader_slot = KEEPER_NO_SLOT,
                         .output_slot = ring->counters[0].slot};

    open_ring_fill_tag(ring, index, &event);
    return open_ring_counter(ring, &attr, &event, index);
}

static int open_ring_namespaces_on(CpuRing *ring) {
    PdAttr attr = side_band_namespaces_attr(ring->set->sampler);

    for (size_t i = 0; i < ring->n_counters; i++)
        if (ring->counters[i].event == NAMESPACES_EVENT)
            return 0;
    attr.wakeup_events = watermark(ring->ring.size, SIDE_BAND_EIGHTHS);
    return open_ring_beside(ring, attr, -1, NAMESPACES_EVENT);
}

int open_namespaces(Sampler *sampler) {
    if (sampler_follows_processes(sampler) || sampler->records_namespaces)
        return 0;
    for (size_t i = 0; i < sampler->side_band.n; i++) {
        CpuRing *ring = sampler->side_band.rings[i];
        int r = open_ring_namespaces_on(ring);

        if (r < 0 && r != -ENODEV)
            return limit_log_open_failure(r, NULL, "dummy", ring->cpu);
    }
    sampler->records_namespaces = true;
    return 0;
}

static int open_ring_first_shared(CpuRing *ring, int32_t pid) {
    const Sampler *sampler = ring->set->sampler;
    KeeperEvent event = {.pid = pid,
                         .cpu = (int32_t)ring->cpu,
                         .leader_slot = KEEPER_NO_SLOT,
                         .output_slot = KEEPER_NO_SLOT};
    int r;

    ring->lost_by_records =
        ring->set->ops->inherits || !(sampler->side_band_attr.read_format & PD_FORMAT_LOST);
    open_ring_fill_tag(ring, SIDE_BAND_EVENT, &event);
    r = open_ring_shared_ring(ring, &event);
    return r == 0 && ring->set->kind == TAG_SIDE_BAND && sampler->records_namespaces
               ? open_ring_namespaces_on(ring)
               : r;
}

static int open_ring_shared(CpuRing *ring, int32_t pid) {
    int r;

    if (ring->n_counters == 0)
        return open_ring_first_shared(ring, pid);
    r = open_ring_beside(ring, open_ring_shared_attr(ring, ring->ring.size), pid, SIDE_BAND_EVENT);
    return r == -ESRCH ? 0 : r;
}

static bool open_ring_may_be_smaller(SamplerSession *session, int error) {
    uint64_t smaller = session->ring_bytes / 2;

    if (!open_ring_lacks_memory(error) || smaller < limit_ring_bytes_min())
        return false;
    if (!(session->degraded & DEGRADED_SMALL_RINGS))
        log_warning(0,
                    "There are no %" PRIu64
                    " bytes a CPU for the rings of session '%s', taking less, %s",
                    session->ring_bytes, session->config.name, open_ring_remedy(error));
    session->degraded |= DEGRADED_SMALL_RINGS;
    session->ring_bytes = smaller;
    return true;
}

/* The kernel may have lowered its limit between the plan and a CPU that comes later. */
static PdAttr open_ring_within_rate(SamplerSession *session, const PdAttr *attr) {
    uint64_t max_hz = session->sampler->max_rate_hz;
    PdAttr lowered = *attr;

    if ((attr->flags & PD_ATTR_FREQ) && max_hz > 0 && attr->sample_period > max_hz) {
        lowered.sample_period = max_hz;
        session->degraded |= DEGRADED_RATE_LOWERED;
    }
    return lowered;
}

static int open_ring_planned(CpuRing *ring, unsigned index, int32_t pid, uint32_t leader_slot) {
    SamplerSession *session = ring->set->session;
    bool first = ring->n_counters == 0;
    KeeperEvent event = {.pid = pid,
                         .cpu = (int32_t)ring->cpu,
                         .cgroup = session->config.cgroup[0] ? session->group.path : NULL,
                         .leader_slot = leader_slot,
                         .output_slot = first ? KEEPER_NO_SLOT : ring->counters[0].slot};
    int r;

    if (atomic_load(&session->is_unwanted))
        return -ECANCELED;
    open_ring_fill_tag(ring, index, &event);
    do {
        PdAttr *attr = &session->plan.events[index].attr, lowered;

        attr->flags |= PD_ATTR_WATERMARK;
        attr->wakeup_events = watermark(session->ring_bytes, SAMPLES_EIGHTHS);
        event.ring_bytes = first ? session->ring_bytes : 0;
        lowered = open_ring_within_rate(session, attr);
        r = open_ring_counter(ring, &lowered, &event, index);
    } while (first && ring->n_counters == 0 && open_ring_may_be_smaller(session, r));
    if (r == 0 && first)
        ring->lost_by_records = ring->set->ops->inherits ||
                                !(session->plan.events[index].attr.read_format & PD_FORMAT_LOST);
    return r;
}

/* A process that cannot be opened does not stop the others. */
static int open_ring_is_one_of_many(const CpuRing *ring, int32_t pid) {
    return ring->set->ops->inherits && (uint32_t)pid != ring->set->sampler->options.keeper_pid;
}

static int open_ring_planned_target(CpuRing *ring, int32_t pid) {
    Plan *plan = &ring->set->session->plan;
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
        r = open_ring_planned(ring, (unsigned)e, pid, leader);
        if (r == -ENOENT)
            continue;
        if (r < 0)
            return r == -ESRCH && pid >= 0 ? 0
                   : r == -ENODEV || r == -ECANCELED || open_ring_is_one_of_many(ring, pid)
                       ? r
                       : open_ring_log_failure(ring, r, planned->name);
        slots[e] = ring->counters[ring->n_counters - 1].slot;
    }
    return 0;
}

int open_target(CpuRing *ring, int32_t pid) {
    return ring->set->session ? open_ring_planned_target(ring, pid) : open_ring_shared(ring, pid);
}

int open_ring(RingSet *set, unsigned cpu) {
    CpuRing *ring;
    int r = ring_set_add(set, cpu, &ring);

    if (r < 0)
        return r;
    r = set->ops->open(ring);
    if (r == 0 && ring->n_counters > 0)
        return 1;
    if (r < 0 && r != -ENODEV && !set->session)
        (void)open_ring_log_failure(ring, r, "dummy");
    ring_set_remove(set, ring, true);
    return r == -ENODEV ? 0 : r;
}
