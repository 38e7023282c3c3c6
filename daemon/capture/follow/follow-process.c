/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/follow/follow-process.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdlib.h>

#include "capture/open/followed.h"
#include "capture/open/open-ring.h"
#include "capture/open/target.h"
#include "capture/open/thread-list.h"
#include "capture/plan/limit.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * Follows processes where the kernel refuses events of whole CPUs. The owner lists the running
 * processes from time to time. A process inherited its events when side-band recorded its fork from
 * a process that was followed then; events opened for it too would count it twice. When this is
 * unknown, because side-band was lost or went to an earlier recorder, the process counts as one
 * that inherited its events. The event of a thread that ended lives on in what the thread started;
 * when the last of these is gone too, the event hangs up and is closed.
 */

enum {
    TRIES = 3, /* to find the threads of a process that starts new ones meanwhile */
    FOLLOWED_TASKS_MAX = 65536,
    KEPT_DESCRIPTORS = 256, /* reserved for everything but events */
    ANCESTORS_MAX = 64,
};

static int follow_read_tids(uint32_t pid, Followed *ret) {
    int r;

    free(ret->tids);
    ret->tids = NULL;
    ret->n_tids = 0;
    r = thread_list_tasks(pid, FOLLOWED_TASKS_MAX, &ret->tids, &ret->n_tids);
    if (r == 0 && ret->n_tids > 0)
        qsort(ret->tids, ret->n_tids, sizeof(*ret->tids), followed_compare_tids);
    return r;
}

/* 1: it has; 0: it has not, or is gone. */
static int follow_has_more_threads(const Followed *followed) {
    Followed now = {.pid = followed->pid};
    int r = follow_read_tids(followed->pid, &now);
    bool more = false;

    for (size_t i = 0; r == 0 && !more && i < now.n_tids; i++)
        more = !followed_has_tid(followed, (int32_t)now.tids[i]);
    free(now.tids);
    return r == -ENOMEM ? r : more;
}

static void follow_close_threads(const RingSet *set, const Followed *followed) {
    for (size_t i = 0; i < set->n; i++)
        for (size_t k = set->rings[i]->n_counters; k-- > 1;)
            if (followed_has_tid(followed, set->rings[i]->counters[k].tid))
                counter_close(set->rings[i], k);
}

static int follow_open_threads(const RingSet *set, const Followed *followed) {
    int r = 0;

    for (size_t i = 0; r >= 0 && i < set->n; i++)
        for (size_t k = 0; r >= 0 && k < followed->n_tids; k++)
            r = open_target(set->rings[i], (int32_t)followed->tids[k]);
    return MIN(r, 0);
}

static void follow_control_threads(const RingSet *set, const Followed *followed,
                                   unsigned long request) {
    for (size_t i = 0; i < set->n; i++)
        for (size_t k = 1; k < set->rings[i]->n_counters; k++)
            if (followed_has_tid(followed, set->rings[i]->counters[k].tid))
                (void)counter_control(&set->rings[i]->counters[k], request);
}

/* Whether the descriptors suffice for side-band and for the sessions. */
static bool follow_has_room(const Sampler *sampler, const RingSet *set,
                            const SamplerSession *session, const Followed *followed) {
    uint64_t each = session ? session->plan.n : 1, limit;

    for (const SamplerSession *s = set == &sampler->side_band ? sampler->sessions : NULL; s;
         s = s->next)
        each += s->rings.ops->inherits ? s->plan.n : 0;
    return limit_descriptors(sampler_descriptors(sampler) + followed->n_tids * set->n * each +
                                 KEPT_DESCRIPTORS,
                             &limit) == 0;
}

/* A thread without events starts threads without events, and a thread with events passes them on.
 * So when a process started threads meanwhile, all its events are opened again. */
static int follow_try_join(Sampler *sampler, const RingSet *set, const SamplerSession *session,
                           Followed *followed) {
    int r = 0;

    for (unsigned i = 0; i < TRIES; i++) {
        r = follow_read_tids(followed->pid, followed);
        if (r < 0)
            return r;
        if (!follow_has_room(sampler, set, session, followed))
            return -EMFILE;
        followed->begin_ns = clock_monotonic_ns();
        r = follow_open_threads(set, followed);
        if (r == 0 && i + 1 < TRIES)
            r = follow_has_more_threads(followed);
        if (r == 0)
            return 0;
        follow_close_threads(set, followed);
        if (r < 0)
            return r;
    }
    return r;
}

/* 1: it is followed now; 0: it is gone, or may not be observed. */
static int follow_join(Sampler *sampler, RingSet *set, const SamplerSession *session,
                       const Followed *wanted) {
    Followed followed = *wanted;
    const Followed *added;
    int r = follow_try_join(sampler, set, session, &followed);

    if (r < 0) {
        free(followed.tids);
        sampler->is_full |= r == -EMFILE || r == -ENFILE || r == -ENOSPC;
        if (r == -ENOMEM || r == -EPIPE)
            return r;
        log_debug("Process %" PRIu32 " cannot be followed, error %d", wanted->pid, -r);
        return 0;
    }
    added = followed_add(set, &followed);
    if (!added) {
        follow_close_threads(set, &followed);
        free(followed.tids);
        return -ENOMEM;
    }
    if (set == &sampler->side_band)
        log_debug("Following process %" PRIu32 ", which has %zu threads", added->pid,
                  added->n_tids);
    if (session && session->is_enabled && !added->is_held)
        follow_control_threads(set, added, PERF_EVENT_IOC_ENABLE);
    return 1;
}

/* Whether it inherited events: a process that was followed at the time of the fork started it. */
static bool follow_has_inherited(const RingSet *set, const SamplerProcesses *running,
                                 uint32_t pid) {
    uint64_t forked_ns = 0, since_ns = followed_of(set)->since_ns;

    for (unsigned i = 0; i < ANCESTORS_MAX; i++) {
        uint32_t ppid = 0;
        uint64_t ns = running->forked_ns(running->userdata, pid, &ppid);
        const Followed *parent = ns > 0 ? followed_find(set, ppid) : NULL;

        if (parent)
            return ns >= parent->begin_ns;
        if (ns == 0)
            break;
        forked_ns = ns;
        pid = ppid;
    }
    /* Its parent is gone and forgotten. */
    return forked_ns > 0 && since_ns > 0 && forked_ns >= since_ns;
}

static bool follow_has_counter(const RingSet *set, uint32_t tid) {
    for (size_t i = 0; set->n > 0 && i < set->rings[0]->n_counters; i++)
        if (set->rings[0]->counters[i].tid == (int32_t)tid)
            return true;
    return false;
}

static bool follow_may_have_inherited(const Sampler *sampler, const RingSet *set,
                                      uint64_t start_ns) {
    return followed_of(set)->since_ns > 0 && start_ns < sampler->unsure_before_ns;
}

static void follow_release(const RingSet *set, const SamplerSession *session, Followed *followed) {
    if (!followed->is_held)
        return;
    followed->is_held = false;
    if (session->is_enabled)
        follow_control_threads(set, followed, PERF_EVENT_IOC_ENABLE);
}

/* Its events are open already; only its threads are unknown. If it is gone, nothing is lost. */
static int follow_take_adopted(RingSet *set, Followed *wanted) {
    int r = follow_read_tids(wanted->pid, wanted);

    if (r == 0 && !followed_add(set, wanted))
        r = -ENOMEM;
    if (r < 0)
        free(wanted->tids);
    return r == -ENOMEM ? r : 0;
}

/* 1: its events were opened just now. */
static int follow_in_set(Sampler *sampler, RingSet *set, const SamplerSession *session,
                         const SamplerProcesses *running, size_t i, bool holds) {
    Followed wanted = {
        .pid = running->pids[i], .start_ns = running->starts_ns[i], .is_there = true};
    Followed *known = followed_find(set, wanted.pid);

    /* It may be the known one. */
    if (wanted.start_ns == 0) {
        if (known)
            known->is_there = true;
        return 0;
    }
    if (known && known->start_ns == 0)
        known->start_ns = wanted.start_ns;
    if (known && known->start_ns == wanted.start_ns) {
        known->is_there = true;
        follow_release(set, session, known);
        return 0;
    }
    if (followed_of(set)->is_adopted && follow_has_counter(set, wanted.pid))
        return follow_take_adopted(set, &wanted);
    if (follow_has_inherited(set, running, wanted.pid) ||
        follow_may_have_inherited(sampler, set, wanted.start_ns))
        return 0;
    wanted.is_held = holds;
    return follow_join(sampler, set, session, &wanted);
}

/* Forgets processes that ended. What they started goes on, and their samples begin at last. */
static void follow_forget_gone(RingSet *set, const SamplerSession *session, uint32_t keeper) {
    for (size_t i = followed_of(set)->n; i-- > 0;) {
        Followed *followed = &set->followers->items[i];

        if (followed->is_there || followed->pid == keeper)
            continue;
        follow_release(set, session, followed);
        followed_forget(set, followed);
    }
}

/* Closes the events whose thread has ended, together with all that it started. */
static void follow_close_hung(CpuRing *ring) {
    _cleanup_free_ struct pollfd *fds = calloc(ring->n_counters, sizeof(*fds));

    if (!fds)
        return;
    for (size_t i = 0; i < ring->n_counters; i++)
        fds[i].fd = ring->counters[i].fd;
    if (poll(fds, ring->n_counters, 0) <= 0)
        return;
    for (size_t i = ring->n_counters; i-- > 1;)
        if (fds[i].revents & (POLLHUP | POLLERR))
            counter_close(ring, i);
}

static void follow_begin(RingSet *set) {
    if (!set->ops->inherits)
        return;
    for (size_t i = 0; i < followed_of(set)->n; i++)
        set->followers->items[i].is_there = false;
    for (size_t i = 0; i < set->n; i++)
        follow_close_hung(set->rings[i]);
}

static int follow_end(RingSet *set, const SamplerSession *session, uint32_t keeper) {
    Followers *all = set->ops->inherits ? followed_make(set) : NULL;

    if (!all)
        return set->ops->inherits ? -ENOMEM : 0;
    follow_forget_gone(set, session, keeper);
    if (all->since_ns == 0)
        all->since_ns = clock_monotonic_ns();
    return 0;
}

/* Side-band first: samples begin only where there is side-band. */
static int follow_process(Sampler *sampler, const SamplerProcesses *running, size_t i) {
    uint32_t pid = running->pids[i];
    int r = follow_in_set(sampler, &sampler->side_band, NULL, running, i, false);
    bool holds = r > 0;

    if (r >= 0 && sampler->records_data) {
        r = follow_in_set(sampler, &sampler->data, NULL, running, i, false);
        holds |= r > 0;
    }
    if (r >= 0 && holds)
        r = running->on_followed(running->userdata, pid);
    if (r < 0 || (!followed_find(&sampler->side_band, pid) &&
                  !follow_has_inherited(&sampler->side_band, running, pid) &&
                  !follow_may_have_inherited(sampler, &sampler->side_band, running->starts_ns[i])))
        return r;
    for (SamplerSession *s = sampler->sessions; r >= 0 && s; s = s->next)
        if (s->rings.ops->inherits)
            r = follow_in_set(sampler, &s->rings, s, running, i, holds);
    return r;
}

static void follow_log_full(const Sampler *sampler, bool was_full,
                            const SamplerProcesses *running) {
    uint64_t limit = 0;

    if (!sampler->is_full || was_full)
        return;
    (void)limit_descriptors(UINT32_MAX, &limit);
    log_warning(0,
                "Not all of the %zu processes of this user are followed, their events take more "
                "than the %" PRIu64 " file descriptors that the limit leaves, %" PRIu64
                " are used, raise ulimit -n",
                running->n, limit, sampler_descriptors(sampler));
}

int sampler_follow(Sampler *sampler, const SamplerProcesses *running) {
    bool was_full = sampler->is_full;
    int r = 0;

    sampler->is_full = false;
    follow_begin(&sampler->side_band);
    follow_begin(&sampler->data);
    for (SamplerSession *s = sampler->sessions; s; s = s->next)
        follow_begin(&s->rings);
    for (size_t i = 0; r >= 0 && i < running->n; i++)
        r = follow_process(sampler, running, i);
    if (r >= 0)
        r = follow_end(&sampler->side_band, NULL, sampler->options.keeper_pid);
    if (r == 0)
        r = follow_end(&sampler->data, NULL, sampler->options.keeper_pid);
    for (SamplerSession *s = sampler->sessions; r == 0 && s; s = s->next)
        r = follow_end(&s->rings, s, sampler->options.keeper_pid);
    if (r == 0)
        follow_log_full(sampler, was_full, running);
    return r;
}

void sampler_release(Sampler *sampler, uint32_t pid) {
    for (SamplerSession *s = sampler->sessions; s; s = s->next) {
        Followed *followed = followed_find(&s->rings, pid);

        if (followed)
            follow_release(&s->rings, s, followed);
    }
}
