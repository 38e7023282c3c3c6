/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/open/adopt.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "capture/event/event-attr.h"
#include "capture/open/side-band.h"
#include "util/array.h"
#include "util/log.h"

/*
 * Taking over. The keeper holds the events and rings of a recorder that died or made room, each
 * with a tag. An event that a session would open in the same way goes on, from the position up to
 * which the earlier recorder had given back; other events are closed. A CPU is taken over whole or
 * not at all. Rates may differ: the kernel's limit on them moves, and samples are worth more than a
 * round number.
 */

enum {
    HELD_MAX = 1 << 20,
    ALIVE_LOOKS = 10,
    ALIVE_LOOK_US = 2000, /* the coarsest clocks tick once in so long */
};

/* An event or memory that the keeper held for an earlier recorder, until a session takes it. */
struct Held {
    uint32_t slot;
    int fd; /* -1: a session has it */
    PdAttr attr;
    unsigned cpu;
    int32_t tid;
    uint64_t ring_bytes;
    Tag tag;
};

static void adopt_held_close(Sampler *sampler, Held *held) {
    if (held->fd < 0)
        return;
    closep(&held->fd);
    (void)keeper_close_event(sampler->options.keeper, held->slot);
}

/* An event with its attr, or memory, which has none. */
static bool adopt_parse(const KeeperEvent *event, Held *held) {
    if (event->attr_size > KEEPER_ATTR_MAX || event->cpu < 0 ||
        !tag_decode(event->tag, &held->tag) || held->tag.cpu != held->cpu)
        return false;
    if (event->attr_size == 0 || held->tag.kind == TAG_ARENA)
        return event->attr_size == 0 && held->tag.kind == TAG_ARENA;
    return pd_attr_parse(&held->attr, (Bytes){.data = event->attr, .size = event->attr_size},
                         false) == 0;
}

static int adopt_hold(Sampler *sampler, uint32_t slot, const KeeperEvent *event, int fd) {
    Held held = {.slot = slot,
                 .fd = fd,
                 .cpu = (unsigned)event->cpu,
                 .tid = event->pid,
                 .ring_bytes = event->ring_bytes};
    bool is_ours = adopt_parse(event, &held);
    Held *added =
        is_ours && sampler->n_held < HELD_MAX ? array_grow(&sampler->held, &sampler->n_held) : NULL;

    if (added)
        *added = held;
    else
        adopt_held_close(sampler, &held);
    return is_ours && !added ? -ENOMEM : 0;
}

int adopt_list(Sampler *sampler) {
    uint32_t slot = KEEPER_NO_SLOT;

    for (;;) {
        KeeperEvent event = {};
        int fd = -1, r = keeper_next_event(sampler->options.keeper, &slot, &event, &fd);

        if (r < 0)
            return log_error(r, "Failed to ask the keeper what an earlier recorder left: %m");
        if (r == 0)
            return 0;
        r = adopt_hold(sampler, slot, &event, fd);
        if (r < 0)
            return r;
    }
}

void adopt_leave(Sampler *sampler) {
    for (size_t i = 0; i < sampler->n_held; i++)
        closep(&sampler->held[i].fd);
    free(sampler->held);
    sampler->held = NULL;
    sampler->n_held = 0;
}

void adopt_forget(Sampler *sampler) {
    for (size_t i = 0; i < sampler->n_held; i++)
        adopt_held_close(sampler, &sampler->held[i]);
    free(sampler->held);
    sampler->held = NULL;
    sampler->n_held = 0;
}

static bool adopt_is_of(const Held *held, const RingSet *set) {
    return held->fd >= 0 && held->tag.kind == set->kind &&
           (!set->session || held->tag.identity == set->session->identity);
}

/* Encodes the attr without sizes and rates, which depend on what the host allowed at the time. */
static void adopt_encode_lasting(const PdAttr *attr, bool any_rate, bool any_stack, Buffer *out) {
    PdAttr lasting = any_stack ? event_attr_unwound(attr) : *attr;

    lasting.wakeup_events = 0;
    if (any_rate)
        lasting.sample_period = 0;
    lasting.flags |= PD_ATTR_WATERMARK;
    pd_attr_encode(&lasting, PD_ATTR_SIZE_KNOWN, out, false);
}

static bool adopt_is_same(const PdAttr *a, const PdAttr *b, bool any_stack) {
    bool any_rate = a->flags & b->flags & PD_ATTR_FREQ;
    _cleanup_(buffer_done) Buffer x = {}, y = {};

    adopt_encode_lasting(a, any_rate, any_stack, &x);
    adopt_encode_lasting(b, any_rate, any_stack, &y);
    return buffer_error(&x) == 0 && buffer_error(&y) == 0 &&
           bytes_equal(buffer_bytes(&x), buffer_bytes(&y));
}

static bool adopt_is_expected(const Sampler *sampler, const RingSet *set, const Held *held) {
    PdAttr namespaces = side_band_namespaces_attr(sampler), data = side_band_data_attr(sampler);
    const SamplerSession *session = set->session;
    const PlanEvent *event;

    if (set->kind == TAG_SIDE_BAND && held->tag.event == NAMESPACES_EVENT)
        return adopt_is_same(&held->attr, &namespaces, false);
    if (!session)
        return held->tag.event == SIDE_BAND_EVENT &&
               adopt_is_same(&held->attr, set->kind == TAG_DATA ? &data : &sampler->side_band_attr,
                             false);
    if (held->tag.event >= session->plan.n)
        return false;
    /* How much of a stack fits, and whether it is taken at all, may have been settled otherwise;
     * but all CPUs of a session have the same. */
    event = &session->plan.events[held->tag.event];
    return adopt_is_same(&held->attr, &event->attr,
                         set->n == 0 && (event->is_unwound || event->may_unwind));
}

static bool adopt_has_event(const Sampler *sampler, const RingSet *set, unsigned cpu,
                            size_t event) {
    for (size_t i = 0; i < sampler->n_held; i++)
        if (adopt_is_of(&sampler->held[i], set) && sampler->held[i].cpu == cpu &&
            sampler->held[i].tag.event == event)
            return true;
    return false;
}

/* Whether a CPU has one ring, and every event as we would open it. A CPU that is not online counts
 * too, for the records that its ring still holds. */
static bool adopt_is_whole(const Sampler *sampler, const RingSet *set, unsigned cpu) {
    const SamplerSession *session = set->session;
    size_t n_rings = 0;

    if (session && !session_wants_cpu(session, cpu))
        return false;
    for (size_t i = 0; i < sampler->n_held; i++) {
        const Held *held = &sampler->held[i];

        if (!adopt_is_of(held, set) || held->cpu != cpu)
            continue;
        if (!adopt_is_expected(sampler, set, held))
            return false;
        n_rings += held->ring_bytes > 0;
    }
    for (size_t e = 0; session && e < session->plan.n; e++) {
        const CpuList *cpus = &session->plan.events[e].cpus;

        if ((cpus->n == 0 || cpu_list_has(cpus, cpu)) && !adopt_has_event(sampler, set, cpu, e))
            return false;
    }
    return n_rings == 1;
}

/* Events that are opened beside it later get the same attr, unless its rate is too high now. */
static void adopt_take_attr(CpuRing *ring, const Held *held) {
    PlanEvent *event = &ring->set->session->plan.events[held->tag.event];
    PdAttr attr = held->attr;

    if (attr.flags & PD_ATTR_FREQ)
        attr.sample_period = MIN(attr.sample_period, event->attr.sample_period);
    plan_adopt_attr(event, &attr);
}

static int adopt_take_counter(CpuRing *ring, Held *held) {
    Counter counter = {.slot = held->slot,
                       .fd = held->fd,
                       .tid = held->tid,
                       .event = held->tag.event,
                       .read_format = held->attr.read_format},
            *to;

    if (ioctl(held->fd, PERF_EVENT_IOC_ID, &counter.id) < 0)
        return -errno;
    to = array_grow(&ring->counters, &ring->n_counters);
    if (!to)
        return -ENOMEM;
    *to = counter;
    held->fd = -1;
    if (ring->set->session) {
        adopt_take_attr(ring, held);
        session_adopt_group(ring->set->session, held->tag.group);
    }
    return 0;
}

static int adopt_take_matching(Sampler *sampler, CpuRing *ring, bool with_ring) {
    for (size_t i = 0; i < sampler->n_held; i++) {
        Held *held = &sampler->held[i];
        int r;

        if (!adopt_is_of(held, ring->set) || held->cpu != ring->cpu ||
            (held->ring_bytes > 0) != with_ring)
            continue;
        r = with_ring ? ring_init(&ring->ring, held->fd, held->ring_bytes) : 0;
        if (r == 0)
            r = adopt_take_counter(ring, held);
        if (r < 0)
            return r;
    }
    return 0;
}

static int adopt_take_cpu(Sampler *sampler, unsigned cpu, RingSet *set) {
    CpuRing *ring;
    int r = ring_set_add(set, cpu, &ring);

    if (r < 0)
        return r;
    ring->lost_by_records = true;
    r = adopt_take_matching(sampler, ring, true);
    if (r == 0)
        r = adopt_take_matching(sampler, ring, false);
    if (r < 0) {
        log_warning(r, "Failed to take over the rings of CPU %u, opening new ones: %m", cpu);
        ring_set_remove(set, ring, true);
        return r == -ENOMEM ? r : 0;
    }
    ring->taken = ring->noted = ring_tail(&ring->ring);
    for (size_t i = 0; i < RING_MARKS; i++)
        ring->marks[i] = ring->taken;
    return 0;
}

/* Returns how long the event was enabled: the second word. */
static uint64_t adopt_enabled_ns(const CpuRing *ring) {
    uint64_t words[4] = {};

    return read(ring->counters[0].fd, words, sizeof(words)) > 0 ? words[1] : 0;
}

/* While a CPU is away, the time of its events stands still, and it stays so when the CPU is
 * back. */
static size_t adopt_unmark_living(const RingSet *side_band) {
    size_t n = 0;

    for (size_t i = 0; i < side_band->n; i++) {
        CpuRing *ring = side_band->rings[i];

        ring->is_gone = ring->is_gone && adopt_enabled_ns(ring) == ring->enabled_ns;
        n += ring->is_gone;
    }
    return n;
}

/* Looks at all CPUs at once, since after a suspend only one of them is left. */
static void adopt_mark_dead_cpus(const Sampler *sampler, const RingSet *side_band) {
    for (size_t i = 0; i < side_band->n; i++) {
        CpuRing *ring = side_band->rings[i];

        ring->enabled_ns = adopt_enabled_ns(ring);
        ring->is_gone |= cpu_list_has(&sampler->online, ring->cpu);
    }
    for (unsigned i = 0; i < ALIVE_LOOKS && adopt_unmark_living(side_band) > 0; i++)
        (void)usleep(ALIVE_LOOK_US);
}

/* Other events of a CPU share the fate of its side-band event. */
void adopt_mark_dead(const Sampler *sampler, const RingSet *set) {
    /* For a thread time passes only while it runs, and its events outlive a CPU. */
    if (set->ops->inherits)
        return;
    if (set->kind == TAG_SIDE_BAND)
        adopt_mark_dead_cpus(sampler, set);
    for (size_t i = 0; set->kind != TAG_SIDE_BAND && i < set->n; i++) {
        const CpuRing *side_band = ring_set_find(&sampler->side_band, set->rings[i]->cpu);

        set->rings[i]->is_gone |= side_band && side_band->is_gone;
    }
}

int adopt_rings(Sampler *sampler, RingSet *set) {
    int r = 0;

    for (size_t i = 0; r == 0 && i < sampler->n_held; i++) {
        Held *held = &sampler->held[i];

        if (adopt_is_of(held, set) && !ring_set_find(set, held->cpu) &&
            adopt_is_whole(sampler, set, held->cpu))
            r = adopt_take_cpu(sampler, held->cpu, set);
        if (adopt_is_of(held, set))
            adopt_held_close(sampler, held);
    }
    adopt_mark_dead(sampler, set);
    return r == 0 && set->n > 0 && set->ops->adopt ? set->ops->adopt(set) : r;
}

bool adopt_arena(SamplerSession *session, int *ret_fd) {
    Sampler *sampler = session->sampler;

    for (size_t i = 0; i < sampler->n_held; i++) {
        Held *held = &sampler->held[i];

        if (held->fd < 0 || held->tag.kind != TAG_ARENA || held->tag.identity != session->identity)
            continue;
        session->arena.slot = held->slot;
        session->arena.size = held->ring_bytes;
        *ret_fd = TAKE_FD(held->fd);
        return true;
    }
    return false;
}
