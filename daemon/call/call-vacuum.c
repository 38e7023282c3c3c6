/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "call/call-vacuum.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include "util/thread.h"

/*
 * A file system may take seconds to delete some thousand segments, so a thread that lives for one
 * vacuum does it. Only one runs at a time, because two would slow each other down. The thread
 * reports its end by an eventfd and touches nothing but the store, its result and that eventfd.
 */

struct Vacuum {
    Store *store;
    void (*on_end)(void *userdata, const VacuumResult *result);
    void *userdata;
    int event; /* becomes readable when the thread is done */
    LoopSource *source;
    atomic_bool is_enough;
    pthread_t thread;
    bool is_running;
    StoreLimits limits; /* of the running vacuum, like `found` */
    VacuumResult found, last;
    uint64_t number; /* of the vacuum that runs or ran last */
};

static void *call_vacuum_run(void *userdata) {
    Vacuum *vacuum = userdata;
    VacuumResult *found = &vacuum->found;
    uint64_t one = 1;

    found->error = store_vacuum_to(vacuum->store, &vacuum->limits, &found->removed, &found->bytes);
    (void)!write(vacuum->event, &one, sizeof(one));
    return NULL;
}

static void call_vacuum_join(Vacuum *vacuum) {
    if (!vacuum->is_running)
        return;
    (void)pthread_join(vacuum->thread, NULL);
    vacuum->is_running = false;
    vacuum->last = vacuum->found;
}

static int call_vacuum_on_ended(void *userdata) {
    Vacuum *vacuum = userdata;
    VacuumResult result;
    uint64_t n;

    if (read(vacuum->event, &n, sizeof(n)) != sizeof(n))
        return 0;
    call_vacuum_join(vacuum);
    result = vacuum->last;
    vacuum->on_end(vacuum->userdata, &result);
    return 0;
}

int vacuum_new(Store *store, Loop *loop, void (*on_end)(void *userdata, const VacuumResult *result),
               void *userdata, Vacuum **ret) {
    _cleanup_(vacuum_freep) Vacuum *vacuum = calloc(1, sizeof(*vacuum));
    int r;

    if (!vacuum)
        return -ENOMEM;
    *vacuum = (Vacuum){.store = store, .on_end = on_end, .userdata = userdata};
    vacuum->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (vacuum->event < 0)
        return -errno;
    r = loop_add_readable(loop, vacuum->event, call_vacuum_on_ended, vacuum, &vacuum->source);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(vacuum);
    return 0;
}

Vacuum *vacuum_free(Vacuum *vacuum) {
    if (!vacuum)
        return NULL;
    atomic_store(&vacuum->is_enough, true);
    call_vacuum_join(vacuum);
    loop_source_free(vacuum->source);
    closep(&vacuum->event);
    free(vacuum);
    return NULL;
}

int vacuum_begin(Vacuum *vacuum, const StoreLimits *limits, uint64_t *ret_number) {
    int r;

    if (vacuum->is_running)
        return -EBUSY;
    vacuum->limits = *limits;
    vacuum->limits.is_enough = &vacuum->is_enough;
    vacuum->found = (VacuumResult){};
    r = thread_start(&(ThreadOptions){.name = "profd-vacuum", .nice = THREAD_NICE_USUAL},
                     call_vacuum_run, vacuum, &vacuum->thread);
    if (r < 0)
        return r;
    vacuum->is_running = true;
    *ret_number = ++vacuum->number;
    return 0;
}

bool vacuum_result(const Vacuum *vacuum, uint64_t number, VacuumResult *ret) {
    if (vacuum->is_running ? number + 1 != vacuum->number : number != vacuum->number)
        return false;
    *ret = vacuum->last;
    return true;
}
