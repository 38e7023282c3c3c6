/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A writer of a store that is killed: a process of its own, so that its death is a real one. */

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "make-store.h"

/* The records that the child knows to be written, kept where its death does not reach. */
typedef struct Shared {
    _Atomic uint64_t samples, sweeps;
    uint64_t stop_after; /* sweeps; 0: never */
} Shared;

static inline Shared *share(void) {
    Shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return shared == MAP_FAILED ? NULL : shared;
}

/* Writes until it is killed: sweeps of four CPUs, a new segment every third. */
static inline void write_for_ever(Place *place, const SessionConfig *config, Shared *shared,
                                  unsigned rotate_each) {
    StoreSession *session;
    uint64_t samples = 0;

    /* A test that is stopped must not leave it behind. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (place_open(place) < 0 || store_session_new(place->store, config, false, &session) < 0)
        _exit(1);
    for (uint64_t sweep = 0;; sweep++) {
        uint64_t now = clock_anchor_now().monotonic_ns;

        if (sweep % rotate_each == 0 && begin_segment(place, session) < 0)
            _exit(1);
        for (unsigned cpu = 0; cpu < 4; cpu++) {
            unsigned n = 1 + (unsigned)(now / 1000 + cpu) % 3000;

            if (write_side_band(session, now) < 0 || write_samples(session, cpu, now, n) < 0)
                _exit(1);
            samples += n;
        }
        if (end_sweep(session, sweep + 1) < 0 || !wait_written(session, sweep + 1))
            _exit(1);
        shared->samples = samples;
        shared->sweeps = sweep + 1;
        while (shared->sweeps == shared->stop_after)
            pause();
    }
}

/* 0 once it wrote `sweeps` and was killed a little later. */
static inline int kill_one(Place *place, const SessionConfig *config, Shared *shared,
                           uint64_t sweeps, unsigned later_us, unsigned rotate_each) {
    pid_t pid;
    int status;

    shared->samples = shared->sweeps = 0;
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        write_for_ever(place, config, shared, rotate_each);
    for (unsigned i = 0; i < 10000 && shared->sweeps < sweeps; i++)
        usleep(1000);
    usleep(later_us);
    kill(pid, SIGKILL);
    if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
        return -ECHILD;
    return shared->sweeps < sweeps ? -ETIMEDOUT : 0;
}
