/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "call/errand.h"

#include <errno.h>
#include <fcntl.h>

#include "call/answer.h"

/*
 * An errand is shared by its work, which cannot be cancelled, and its call, which may go away at
 * any time. The last of the two frees it.
 */

struct Errand {
    Waits *waits;
    ErrandOptions options;
    unsigned n_ends;
    bool is_done;
};

int errand_new(Waits *waits, const ErrandOptions *options, Errand **ret) {
    Errand *errand = calloc(1, sizeof(*errand));

    if (!errand) {
        options->release(options->userdata);
        return -ENOMEM;
    }
    *errand = (Errand){.waits = waits, .options = *options, .n_ends = 1};
    *ret = errand;
    return 0;
}

Errand *errand_free(Errand *errand) {
    if (--errand->n_ends > 0)
        return NULL;
    errand->options.release(errand->options.userdata);
    free(errand);
    return NULL;
}

static void errand_release(void *userdata) {
    errand_free(userdata);
}

static bool errand_check(void *userdata, Call *call) {
    const Errand *errand = userdata;

    if (!errand->is_done)
        return false;
    /* Unregister first: the answer may be a stream that outlives the errand. */
    call_on_gone(call, NULL, NULL);
    errand->options.answer(errand->options.userdata, call);
    return true;
}

int errand_wait(Errand *errand, Call *call) {
    errand->n_ends++;
    return waits_add(
        errand->waits, call,
        &(WaitOptions){.check = errand_check, .release = errand_release, .userdata = errand});
}

void errand_done(Errand *errand) {
    errand->is_done = true;
    waits_check(errand->waits);
    errand_free(errand);
}

static void errand_work(void *userdata) {
    const Errand *errand = userdata;

    errand->options.work(errand->options.userdata);
}

static void errand_job_done(void *userdata) {
    errand_done(userdata);
}

int errand_run(Waits *waits, Worker *housekeeper, Call *call, const ErrandOptions *options) {
    bool privileged = call_peer(call)->right >= RIGHT_ADMIN;
    Errand *errand;
    int r = errand_new(waits, options, &errand);

    if (r < 0)
        return r;
    r = housekeeper_add(
        housekeeper, &(WorkerJob){.run = errand_work, .done = errand_job_done, .userdata = errand},
        privileged);
    if (r < 0) {
        errand_free(errand);
        return r == -EBUSY ? call_fail_busy(call) : r;
    }
    return errand_wait(errand, call);
}

int errand_reply_file(Call *call, int file, uint64_t bytes) {
    int fd = fcntl(file, F_DUPFD_CLOEXEC, 0);

    return fd < 0
               ? call_fail_reason(call, -errno, NULL)
               : call_reply_file(call, json_pack("{s:o}", "bytes", answer_count(bytes)), fd, bytes);
}
