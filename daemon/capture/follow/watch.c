/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/follow/watch.h"

#include <errno.h>
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
 * What the loop calls: messages about devices, and a tick once a second that checks CPUs where
 * there are no messages, CPUs that could not be opened, and the kernel's limit on rates.
 */

enum {
    UEVENT_GROUP = 1,
    RATE_TICKS = 4, /* between two checks of the kernel's limit */
};

static int watch_on_change(void *userdata) {
    Sampler *sampler = userdata;

    return hotplug_is_due(sampler) ? sampler->on_cpus(sampler->watch_userdata) : 0;
}

static int watch_on_tick(void *userdata) {
    Sampler *sampler = userdata;
    int r;

    sampler->ticks++;
    if (sampler->ticks % RATE_TICKS == 0)
        rate_watch(sampler);
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

static int watch_listen_to_uevents(Sampler *sampler) {
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = UEVENT_GROUP};
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
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
