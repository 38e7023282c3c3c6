/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Calls that are answered later, for example when a writer has written or a session has ended. */

#include "control/control.h"
#include "util/macro.h"

typedef struct Waits Waits;

typedef struct WaitOptions {
    /* Returns true when the wait is over; it must have ended the call by then. */
    bool (*check)(void *userdata, Call *call);
    void (*release)(void *userdata); /* always called, and last; may be NULL */
    void *userdata;
} WaitOptions;

int waits_new(Waits **ret);
Waits *waits_free(Waits *waits);
DEFINE_CLEANUP(Waits *, waits_free);

/* Checks once at once. -ENOMEM: the wait was released. */
int waits_add(Waits *waits, Call *call, const WaitOptions *options);
/* Checks all waiting calls. */
void waits_check(Waits *waits);
