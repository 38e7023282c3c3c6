/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>

#include "capture/sampler/limit.h"
#include "capture/sampler/sampler-private.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * The loop's side: rings that fill, messages about devices, and a beat once a second that looks
 * after CPUs where there are no messages, after CPUs that could not be opened, and after the
 * kernel's limit on rates, which it lowers by itself when interrupts take too long.
 */

enum {
    UEVENT_GROUP = 1,
    RATE_TICKS = 4, /* between two looks at the kernel's limit */
    WORTH_SAMPLES = 8,
    WORTH_SIDE_BAND = 16
};

/* The kernel's limit moved: those above it are throttled from now on. */
void watch_rate(Sampler *sampler) {
    uint64_t max = limit_sample_rate(), before = sampler->max_rate_hz;

    if (max == 0 || max == before)
        return;
    sampler->max_rate_hz = max;
    for (SamplerSession *s = sampler->sessions; s; s = s->next) {
        s->degraded &= ~(unsigned)DEGRADED_RATE_LOWERED;
        s->degraded |= s->plan.degraded & DEGRADED_RATE_LOWERED;
        if (s->plan.hz <= max)
            continue;
        s->degraded |= DEGRADED_RATE_LOWERED;
        log_warning(0,
                    "The kernel allows no more than %" PRIu64
                    " samples a second now and throttles session '%s', which takes %" PRIu64
                    "; lower Frequency=, or raise kernel.perf_event_max_sample_rate or "
                    "kernel.perf_cpu_time_max_percent",
                    max, s->config.name, s->plan.hz);
    }
}

static int watch_on_change(void *userdata) {
    Sampler *sampler = userdata;

    return hotplug_is_due(sampler) ? sampler->on_cpus(sampler->watch_userdata) : 0;
}

static int watch_on_tick(void *userdata) {
    Sampler *sampler = userdata;
    int r;

    sampler->ticks++;
    if (sampler->ticks % RATE_TICKS == 0)
        watch_rate(sampler);
    r = watch_on_change(sampler);
    for (SamplerSession *s = sampler->sessions; s; s = s->next)
        hotplug_check_partial(s);
    return r;
}

/*
 * A sweep takes what all rings hold, so that most of what this one tells of was taken with what
 * another told of before; with twice as many CPUs there are not twice as many sweeps. It tells
 * again before it holds much more than a sweep is for.
 */
static bool watch_is_worth_a_sweep(const CpuRing *ring) {
    unsigned part = ring->set->kind == TAG_SIDE_BAND ? WORTH_SIDE_BAND : WORTH_SAMPLES;

    return ring_head(&ring->ring) - ring->taken >= ring->ring.size / part;
}

/* A descriptor hangs up when its thread is gone, and would be ready for ever; the ring lives on for
 * the other events that write to it, whose descriptors tell as well. */
static int watch_on_ring(void *userdata) {
    CpuRing *ring = userdata;
    Sampler *sampler = ring->sampler;
    struct pollfd hung = {.fd = ring->counters[ring->watched].fd};
    int r = 0;

    if (poll(&hung, 1, 0) > 0 && (hung.revents & (POLLHUP | POLLERR))) {
        ring->source = loop_source_free(ring->source);
        ring->watched++;
        r = watch_ring(ring);
        if (r == 0 && !ring->source && sampler->options.on_ended)
            sampler->options.on_ended(sampler->options.userdata);
    }
    return r < 0 || !watch_is_worth_a_sweep(ring) ? r : sampler->on_full(sampler->watch_userdata);
}

int watch_ring(CpuRing *ring) {
    Sampler *sampler = ring->sampler;

    if (!sampler->loop || ring->source || ring->watched >= ring->n_counters)
        return 0;
    return loop_add_readable(sampler->loop, ring->counters[ring->watched].fd, watch_on_ring, ring,
                             &ring->source);
}

bool sampler_has_ended(const SamplerSession *session) {
    if (!plan_has_threads(&session->config) || session->rings.n == 0)
        return false;
    for (size_t i = 0; i < session->rings.n; i++)
        if (session->rings.rings[i]->watched < session->rings.rings[i]->n_counters)
            return false;
    return true;
}

static int watch_set(const RingSet *set) {
    int r = 0;

    for (size_t i = 0; r == 0 && i < set->n; i++)
        r = watch_ring(set->rings[i]);
    return r;
}

static int watch_listen_to_uevents(Sampler *sampler) {
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = UEVENT_GROUP};
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        log_debug("No messages about devices here, reading the list of CPUs each second");
        closep(&fd);
        return 0;
    }
    sampler->uevent_fd = fd;
    return loop_add_readable(sampler->loop, fd, watch_on_change, sampler, &sampler->uevent_source);
}

int sampler_watch(Sampler *sampler, Loop *loop, LoopCallback on_full, LoopCallback on_cpus,
                  void *userdata) {
    int r;

    sampler->loop = loop;
    sampler->on_full = on_full;
    sampler->on_cpus = on_cpus;
    sampler->watch_userdata = userdata;
    r = watch_set(&sampler->side_band);
    if (r == 0)
        r = watch_set(&sampler->data);
    for (SamplerSession *s = sampler->sessions; r == 0 && s; s = s->next)
        r = watch_set(&s->rings);
    if (r == 0)
        r = loop_add_timer(loop, NS_PER_SECOND, watch_on_tick, sampler, &sampler->tick_source);
    if (r == 0)
        r = group_watch_begin(sampler, watch_on_change);
    return r == 0 ? watch_listen_to_uevents(sampler) : r;
}

void watch_done(Sampler *sampler) {
    loop_source_free(sampler->tick_source);
    loop_source_free(sampler->uevent_source);
    closep(&sampler->uevent_fd);
    group_watch_end(sampler);
}
