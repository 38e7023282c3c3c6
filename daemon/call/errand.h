/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Calls that need the disk: the housekeeper of the store works for them, and they are answered when
 * it is done. */

#include "call/wait.h"
#include "store/folder/housekeeper.h"

typedef struct Errand Errand;

typedef struct ErrandOptions {
    void (*work)(void *userdata);               /* on the housekeeper's thread */
    void (*answer)(void *userdata, Call *call); /* ends the call, unless its client is gone */
    void (*release)(void *userdata);            /* always, and last */
    void *userdata;
} ErrandOptions;

/* Ends the call with Busy where too many wait. For handlers to return. */
int errand_run(Waits *waits, Housekeeper *housekeeper, Call *call, const ErrandOptions *options);

/* The same where others do the work: errand_wait() once that began, errand_done() when it is done,
 * or errand_free() where it did not begin. */
int errand_new(Waits *waits, const ErrandOptions *options, Errand **ret);
int errand_wait(Errand *errand, Call *call);
void errand_done(Errand *errand);
Errand *errand_free(Errand *errand);
