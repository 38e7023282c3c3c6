/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/follow/watch.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capture/follow/group-watch.h"
#include "capture/follow/hotplug.h"
#include "capture/follow/rate.h"
#include "capture/follow/watch-ring.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * What the loop calls: messages about devices, and a tick that checks CPUs where there are no
 * messages, CPUs that could not be opened, control groups, and the kernel's limit on rates. It
 * comes once a second, and rarely while nothing but the limit is to be checked: a wake-up costs
 * more than a hundred samples.
 */

#define TICK_NS      NS_PER_SECOND
#define CALM_TICK_NS (5 * NS_PER_SECOND)

enum {
    UEVENT_GROUP = 1,
    RATE_TICKS = 4, /* between two checks of the kernel's limit */
};

/* Whether messages tell what may change. Containers can lack them without notice. */
static bool watch_is_calm(const Sampler *sampler) {
    bool is_calm = sampler->uevent_fd >= 0 && hotplug_is_settled(sampler);

    for (const SamplerSession *s = sampler->sessions; is_calm && s; s = s->next)
        is_calm = !s->group.is_followed;
    return is_calm;
}

int watch_hurry(Sampler *sampler) {
    return sampler->tick_source ? loop_set_period(sampler->tick_source, TICK_NS) : 0;
}

int sampler_check_cpus(Sampler *sampler) {
    return hotplug_find_dead(sampler) ? watch_hurry(sampler) : 0;
}

static int watch_on_change(void *userdata) {
    Sampler *sampler = userdata;
    int r;

    if (!hotplug_is_due(sampler))
        return 0;
    r = watch_hurry(sampler);
    return r < 0 ? r : sampler->on_cpus(sampler->watch_userdata);
}

static int watch_on_tick(void *userdata) {
    Sampler *sampler = userdata;
    bool is_calm = watch_is_calm(sampler);
    int r;

    sampler->ticks++;
    if (is_calm || sampler->ticks % RATE_TICKS == 0)
        rate_watch(sampler);
    r = loop_set_period(sampler->tick_source, is_calm ? CALM_TICK_NS : TICK_NS);
    if (r == 0)
        r = watch_on_change(sampler);
    for (SamplerSession *s = sampler->sessions; s; s = s->next)
        hotplug_check_partial(s);
    return r;
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

/* The filter passes messages that begin with "offline@" or "online@", which the kernel sends for
 * CPUs and blocks of memory alone. Other devices would wake the thread for nothing. */
static int watch_ignore_others(int fd) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x6f66666c /* offl */, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x6f6e6c69 /* onli */, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    const struct sock_fprog program = {.len = ARRAY_SIZE(code), .filter = code};

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

static int watch_listen_to_uevents(Sampler *sampler) {
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = UEVENT_GROUP};
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

    if (fd < 0 || watch_ignore_others(fd) < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        log_debug("The kernel sends no messages about devices here, reading the list of CPUs each "
                  "second");
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
        r = loop_add_timer(loop, TICK_NS, watch_on_tick, sampler, &sampler->tick_source);
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
