/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>

#include "capture/sampler/limit.h"
#include "capture/sampler/sampler-private.h"
#include "perfdata/record/record.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * Following processes, where whole CPUs are refused. Each thread that runs has its events on every
 * CPU, which write into the CPU's ring and are inherited by what it starts. The rings are the
 * keeper's own: its events come first and stay, whoever else comes and goes.
 *
 * Who must be followed is learned by looks at who runs. A process inherited its events when
 * side-band told of its fork by one that was followed then; to open events for it too would count
 * it twice. Where that cannot be known, since side-band was lost or told to an earlier recorder,
 * it is taken to have inherited them. An event whose thread has ended lives on in what that thread
 * started; when the last of these is gone too it hangs up, and is closed.
 *
 * Recordings know an event by the ids of the keeper's counters, so that nothing changes in them as
 * processes come and go. Records of other counters get that id as they are taken.
 */

enum {
    TRIES = 3, /* to find the threads of a process that starts some meanwhile */
    FOLLOWED_TASKS_MAX = 65536,
    KEPT_DESCRIPTORS = 256, /* for all but events */
    ANCESTORS_MAX = 64,
};

#define ADOPTED_NS (10 * NS_PER_SECOND) /* of forks that rings have kept */

bool own_is_for(const Sampler *sampler, const SessionConfig *config) {
    return sampler->is_own && !plan_has_threads(config) && !config->cgroup[0];
}

bool sampler_is_own(const Sampler *sampler) {
    return sampler->is_own;
}

bool sampler_sees_kernel(const Sampler *sampler) {
    return !(sampler->side_band_attr.flags & PD_ATTR_EXCLUDE_KERNEL);
}

unsigned own_degraded(const SamplerSession *session) {
    if (!own_is_for(session->sampler, &session->config))
        return 0;
    return DEGRADED_OWN_PROCESSES | (session->sampler->is_full ? DEGRADED_PARTIAL_PROCESSES : 0);
}

void sampler_watch_follow(Sampler *sampler, LoopCallback on_wanted, void *userdata) {
    sampler->on_follow = on_wanted;
    sampler->follow_userdata = userdata;
}

void own_doubt(Sampler *sampler) {
    sampler->doubted_ns = clock_ns(CLOCK_BOOTTIME);
}

void own_done(RingSet *set) {
    for (size_t i = 0; i < set->n_followed; i++)
        free(set->followed[i].tids);
    free(set->followed);
    set->followed = NULL;
    set->n_followed = 0;
}

/* -- who is followed ----------------------------------------------------------------------------
 */

/* The first one with that pid or a higher one. */
static size_t own_place_of(const RingSet *set, uint32_t pid) {
    size_t low = 0, high = set->n_followed;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (set->followed[middle].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static Followed *own_find(const RingSet *set, uint32_t pid) {
    size_t i = own_place_of(set, pid);

    return i < set->n_followed && set->followed[i].pid == pid ? &set->followed[i] : NULL;
}

static void own_forget(RingSet *set, Followed *followed) {
    size_t i = (size_t)(followed - set->followed);

    free(followed->tids);
    memmove(followed, followed + 1, (set->n_followed - i - 1) * sizeof(*followed));
    set->n_followed--;
}

/* In the place of one that had the same pid. */
static Followed *own_add(RingSet *set, const Followed *followed) {
    Followed *old = own_find(set, followed->pid);
    size_t i;

    if (old)
        own_forget(set, old);
    if (!array_grow(&set->followed, &set->n_followed))
        return NULL;
    set->n_followed--;
    i = own_place_of(set, followed->pid);
    memmove(&set->followed[i + 1], &set->followed[i],
            (set->n_followed - i) * sizeof(*set->followed));
    set->followed[i] = *followed;
    set->n_followed++;
    return &set->followed[i];
}

int own_begin(RingSet *set, Sampler *sampler) {
    Followed keeper = {.pid = sampler->options.own_pid, .begin_ns = clock_monotonic_ns()};

    return own_find(set, keeper.pid) || own_add(set, &keeper) ? 0 : -ENOMEM;
}

static int own_compare_ids(const void *a, const void *b) {
    const Counter *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}

void own_adopt(RingSet *set, Sampler *sampler) {
    uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);

    for (size_t i = 0; i < set->n; i++) {
        CpuRing *ring = set->rings[i];

        /* The one that brought the ring was the first. */
        qsort(ring->counters, ring->n_counters, sizeof(*ring->counters), own_compare_ids);
    }
    set->is_adopted = true;
    set->since_ns = 1;
    sampler->doubted_ns = now_ns - MIN(now_ns, ADOPTED_NS);
}

/* -- ids ----------------------------------------------------------------------------------------
 */

static Counter *own_find_id(const CpuRing *ring, uint64_t id) {
    Counter key = {.id = id};

    return bsearch(&key, ring->counters, ring->n_counters, sizeof(key), own_compare_ids);
}

Counter *own_teller(const CpuRing *ring, unsigned event) {
    int32_t keeper = ring->counters[0].tid;

    for (size_t i = 0; i < ring->n_counters && ring->counters[i].tid == keeper; i++)
        if (ring->counters[i].event == event)
            return &ring->counters[i];
    return &ring->counters[0];
}

static void own_unify_id(const CpuRing *ring, uint8_t *at) {
    const Counter *counter = own_find_id(ring, load_u64(at, false));

    if (counter)
        store_u64(at, own_teller(ring, counter->event)->id, false);
}

static void own_unify_record(const CpuRing *ring, uint8_t *data, const PdRecord *record) {
    bool throttles = record->type == PD_RECORD_THROTTLE || record->type == PD_RECORD_UNTHROTTLE;

    if (record->size < PD_RECORD_HEADER_SIZE + sizeof(uint64_t))
        return;
    if (record->type == PD_RECORD_LOST || record->type == PD_RECORD_SAMPLE)
        own_unify_id(ring, data + PD_RECORD_HEADER_SIZE);
    /* Behind the time. */
    if (throttles && record->size >= PD_RECORD_HEADER_SIZE + 4 * sizeof(uint64_t))
        for (size_t i = 1; i <= 2; i++)
            own_unify_id(ring, data + PD_RECORD_HEADER_SIZE + i * sizeof(uint64_t));
    if (record->type != PD_RECORD_SAMPLE)
        own_unify_id(ring, data + record->size - sizeof(uint64_t));
}

/* In a copy, unless they are one already: the kernel lets nobody write to the ring itself. */
int own_unify(const CpuRing *ring, Bytes *records) {
    Buffer *scratch = &ring->sampler->scratch;

    if (records->data != scratch->data) {
        buffer_clear(scratch);
        buffer_append(scratch, records->data, records->size);
        if (buffer_error(scratch) < 0)
            return buffer_error(scratch);
    }
    *records = buffer_bytes(scratch);
    for (size_t at = 0; at < records->size;) {
        PdRecord record = pd_record_at(scratch->data + at, false);

        own_unify_record(ring, scratch->data + at, &record);
        at += record.size;
    }
    return 0;
}

/* -- opening and closing ------------------------------------------------------------------------
 */

static int own_compare_tids(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static bool own_has_tid(const Followed *followed, int32_t tid) {
    uint32_t key = (uint32_t)tid;

    return followed->n_tids > 0 &&
           bsearch(&key, followed->tids, followed->n_tids, sizeof(key), own_compare_tids);
}

static int own_read_tids(uint32_t pid, Followed *ret) {
    int r;

    free(ret->tids);
    ret->tids = NULL;
    ret->n_tids = 0;
    r = open_read_tasks(pid, FOLLOWED_TASKS_MAX, &ret->tids, &ret->n_tids);
    if (r == 0 && ret->n_tids > 0)
        qsort(ret->tids, ret->n_tids, sizeof(*ret->tids), own_compare_tids);
    return r;
}

/* 1: it has; 0: it has not, or is gone. */
static int own_has_more_threads(const Followed *followed) {
    Followed now = {.pid = followed->pid};
    int r = own_read_tids(followed->pid, &now);
    bool more = false;

    for (size_t i = 0; r == 0 && !more && i < now.n_tids; i++)
        more = !own_has_tid(followed, (int32_t)now.tids[i]);
    free(now.tids);
    return r == -ENOMEM ? r : more;
}

static void own_close_threads(const RingSet *set, const Followed *followed) {
    for (size_t i = 0; i < set->n; i++)
        for (size_t k = set->rings[i]->n_counters; k-- > 1;)
            if (own_has_tid(followed, set->rings[i]->counters[k].tid))
                counter_close(set->rings[i], k);
}

static int own_open_threads(const RingSet *set, const Followed *followed) {
    int r = 0;

    for (size_t i = 0; r >= 0 && i < set->n; i++)
        for (size_t k = 0; r >= 0 && k < followed->n_tids; k++)
            r = open_thread(set->rings[i], followed->tids[k]);
    return MIN(r, 0);
}

int own_open(const RingSet *set, CpuRing *ring) {
    int r = 0;

    for (size_t i = 0; i < set->n_followed; i++)
        for (size_t k = 0; r >= 0 && k < set->followed[i].n_tids; k++)
            if (set->followed[i].tids[k] != ring->sampler->options.own_pid)
                r = open_thread(ring, set->followed[i].tids[k]);
    return MIN(r, 0);
}

static void own_control_threads(const RingSet *set, const Followed *followed,
                                unsigned long request) {
    for (size_t i = 0; i < set->n; i++)
        for (size_t k = 1; k < set->rings[i]->n_counters; k++)
            if (own_has_tid(followed, set->rings[i]->counters[k].tid))
                (void)counter_control(&set->rings[i]->counters[k], request);
}

/* For side-band and for what comes with it. */
static bool own_has_room(const Sampler *sampler, const RingSet *set, const SamplerSession *session,
                         const Followed *followed) {
    uint64_t each = session ? session->plan.n : 1, limit;

    for (const SamplerSession *s = set == &sampler->side_band ? sampler->sessions : NULL; s;
         s = s->next)
        each += own_is_for(sampler, &s->config) ? s->plan.n : 0;
    return limit_descriptors(sampler_descriptors(sampler) + followed->n_tids * set->n * each +
                                 KEPT_DESCRIPTORS,
                             &limit) == 0;
}

/* Threads that one which had no events yet started meanwhile have none either, and those of one
 * that had some have them. */
static int own_try_join(Sampler *sampler, const RingSet *set, const SamplerSession *session,
                        Followed *followed) {
    int r = 0;

    for (unsigned i = 0; i < TRIES; i++) {
        r = own_read_tids(followed->pid, followed);
        if (r < 0)
            return r;
        if (!own_has_room(sampler, set, session, followed))
            return -EMFILE;
        followed->begin_ns = clock_monotonic_ns();
        r = own_open_threads(set, followed);
        if (r == 0 && i + 1 < TRIES)
            r = own_has_more_threads(followed);
        if (r == 0)
            return 0;
        own_close_threads(set, followed);
        if (r < 0)
            return r;
    }
    return r;
}

/* 1: it is followed now; 0: it is gone, or not for us to look into. */
static int own_join(Sampler *sampler, RingSet *set, const SamplerSession *session,
                    const Followed *wanted) {
    Followed followed = *wanted;
    const Followed *added;
    int r = own_try_join(sampler, set, session, &followed);

    if (r < 0) {
        free(followed.tids);
        sampler->is_full |= r == -EMFILE || r == -ENFILE || r == -ENOSPC;
        if (r == -ENOMEM || r == -EPIPE)
            return r;
        log_debug("Process %" PRIu32 " cannot be followed, error %d", wanted->pid, -r);
        return 0;
    }
    added = own_add(set, &followed);
    if (!added) {
        own_close_threads(set, &followed);
        free(followed.tids);
        return -ENOMEM;
    }
    if (set == &sampler->side_band)
        log_debug("Following process %" PRIu32 ", which has %zu threads", added->pid,
                  added->n_tids);
    if (session && session->is_enabled && !added->is_held)
        own_control_threads(set, added, PERF_EVENT_IOC_ENABLE);
    return 1;
}

/* -- looks --------------------------------------------------------------------------------------
 */

/* By fork, from one that was followed when it did that. */
static bool own_has_inherited(const RingSet *set, const SamplerLook *look, uint32_t pid) {
    uint64_t born_ns = 0;

    for (unsigned i = 0; i < ANCESTORS_MAX; i++) {
        uint32_t ppid = 0;
        uint64_t ns = look->born_ns(look->userdata, pid, &ppid);
        const Followed *parent = ns > 0 ? own_find(set, ppid) : NULL;

        if (parent)
            return ns >= parent->begin_ns;
        if (ns == 0)
            break;
        born_ns = ns;
        pid = ppid;
    }
    /* Its parent is gone and forgotten. */
    return born_ns > 0 && set->since_ns > 0 && born_ns >= set->since_ns;
}

static bool own_has_counter(const RingSet *set, uint32_t tid) {
    for (size_t i = 0; set->n > 0 && i < set->rings[0]->n_counters; i++)
        if (set->rings[0]->counters[i].tid == (int32_t)tid)
            return true;
    return false;
}

static bool own_is_doubtful(const Sampler *sampler, const RingSet *set, uint64_t start_ns) {
    return set->since_ns > 0 && start_ns < sampler->doubted_ns;
}

static void own_release(const RingSet *set, const SamplerSession *session, Followed *followed) {
    if (!followed->is_held)
        return;
    followed->is_held = false;
    if (session->is_enabled)
        own_control_threads(set, followed, PERF_EVENT_IOC_ENABLE);
}

/* Its events are open already; only its threads are to be known. One that is gone is no loss. */
static int own_take_adopted(RingSet *set, Followed *wanted) {
    int r = own_read_tids(wanted->pid, wanted);

    if (r == 0 && !own_add(set, wanted))
        r = -ENOMEM;
    if (r < 0)
        free(wanted->tids);
    return r == -ENOMEM ? r : 0;
}

/* 1: its events were opened just now. */
static int own_follow_one(Sampler *sampler, RingSet *set, const SamplerSession *session,
                          const SamplerLook *look, size_t i, bool holds) {
    Followed wanted = {.pid = look->pids[i], .start_ns = look->starts_ns[i], .is_there = true};
    Followed *known = own_find(set, wanted.pid);

    if (known && known->start_ns == 0)
        known->start_ns = wanted.start_ns;
    if (known && known->start_ns == wanted.start_ns) {
        known->is_there = true;
        own_release(set, session, known);
        return 0;
    }
    if (set->is_adopted && own_has_counter(set, wanted.pid))
        return own_take_adopted(set, &wanted);
    if (own_has_inherited(set, look, wanted.pid) || own_is_doubtful(sampler, set, wanted.start_ns))
        return 0;
    wanted.is_held = holds;
    return own_join(sampler, set, session, &wanted);
}

/* What it started meanwhile goes on, and begins with samples at last. */
static void own_forget_gone(RingSet *set, const SamplerSession *session, uint32_t keeper) {
    for (size_t i = set->n_followed; i-- > 0;) {
        Followed *followed = &set->followed[i];

        if (followed->is_there || followed->pid == keeper)
            continue;
        own_release(set, session, followed);
        own_forget(set, followed);
    }
}

/* The thread has ended, and all that it started. */
static void own_close_hung(CpuRing *ring) {
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

static void own_begin_look(RingSet *set) {
    for (size_t i = 0; i < set->n_followed; i++)
        set->followed[i].is_there = false;
    for (size_t i = 0; i < set->n; i++)
        if (set->rings[i]->is_own)
            own_close_hung(set->rings[i]);
}

static void own_end_look(RingSet *set, const SamplerSession *session, uint32_t keeper) {
    own_forget_gone(set, session, keeper);
    if (set->since_ns == 0)
        set->since_ns = clock_monotonic_ns();
}

/* Side-band first, and samples only where there is side-band. */
static int own_follow_process(Sampler *sampler, const SamplerLook *look, size_t i) {
    uint32_t pid = look->pids[i];
    int r = own_follow_one(sampler, &sampler->side_band, NULL, look, i, false);
    bool holds = r > 0;

    if (r >= 0 && sampler->tells_data) {
        r = own_follow_one(sampler, &sampler->data, NULL, look, i, false);
        holds |= r > 0;
    }
    if (r >= 0 && holds)
        r = look->on_joined(look->userdata, pid);
    if (r < 0 || (!own_find(&sampler->side_band, pid) &&
                  !own_has_inherited(&sampler->side_band, look, pid) &&
                  !own_is_doubtful(sampler, &sampler->side_band, look->starts_ns[i])))
        return r;
    for (SamplerSession *s = sampler->sessions; r >= 0 && s; s = s->next)
        if (own_is_for(sampler, &s->config))
            r = own_follow_one(sampler, &s->rings, s, look, i, holds);
    return r;
}

static void own_tell_full(const Sampler *sampler, bool was_full, const SamplerLook *look) {
    uint64_t limit = 0;

    if (!sampler->is_full || was_full)
        return;
    (void)limit_descriptors(UINT32_MAX, &limit);
    log_warning(0,
                "Not all of the %zu processes of this user are followed, their events take more "
                "than the %" PRIu64 " file descriptors that the limit leaves, %" PRIu64
                " are used, raise ulimit -n",
                look->n, limit, sampler_descriptors(sampler));
}

int sampler_follow(Sampler *sampler, const SamplerLook *look) {
    bool was_full = sampler->is_full;
    int r = 0;

    sampler->is_full = false;
    own_begin_look(&sampler->side_band);
    own_begin_look(&sampler->data);
    for (SamplerSession *s = sampler->sessions; s; s = s->next)
        own_begin_look(&s->rings);
    for (size_t i = 0; r >= 0 && i < look->n; i++)
        r = own_follow_process(sampler, look, i);
    if (r < 0)
        return r;
    own_end_look(&sampler->side_band, NULL, sampler->options.own_pid);
    own_end_look(&sampler->data, NULL, sampler->options.own_pid);
    for (SamplerSession *s = sampler->sessions; s; s = s->next)
        own_end_look(&s->rings, s, sampler->options.own_pid);
    own_tell_full(sampler, was_full, look);
    return 0;
}

void sampler_release(Sampler *sampler, uint32_t pid) {
    for (SamplerSession *s = sampler->sessions; s; s = s->next) {
        Followed *followed = own_find(&s->rings, pid);

        if (followed)
            own_release(&s->rings, s, followed);
    }
}
