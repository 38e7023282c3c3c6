/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Calls that need the disk: the housekeeper of the store does the work, and the call is answered
 * when it is done. */

#include "call/wait.h"
#include "store/folder/housekeeper.h"

typedef struct Errand Errand;

typedef struct ErrandOptions {
    void (*work)(void *userdata);               /* runs on the housekeeper's thread */
    void (*answer)(void *userdata, Call *call); /* ends the call; not called when the client is
                                                 * gone */
    void (*release)(void *userdata);            /* always called, and last */
    void *userdata;
} ErrandOptions;

/* Ends the call with Busy when too many errands wait. Returns what a handler returns. */
int errand_run(Waits *waits, Worker *housekeeper, Call *call, const ErrandOptions *options);

/* The same for work that runs elsewhere: call errand_wait() once it has begun and errand_done()
 * when it is done, or errand_free() if it did not begin. */
int errand_new(Waits *waits, const ErrandOptions *options, Errand **ret);
int errand_wait(Errand *errand, Call *call);
void errand_done(Errand *errand);
Errand *errand_free(Errand *errand);

/* Sends a file, through a descriptor of its own, as call_reply_file(). The caller closes `file`
 * later, with housekeeper_close(), so that no close on the main thread is the last one. */
int errand_reply_file(Call *call, int file, uint64_t bytes);
