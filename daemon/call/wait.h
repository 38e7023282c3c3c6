/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Calls that are answered later: when a writer has written, a session has ended, and the like. */

#include "control/control.h"
#include "util/macro.h"

typedef struct Waits Waits;

typedef struct WaitOptions {
    /* Whether it is over: then the call was ended, by a reply or an error. */
    bool (*check)(void *userdata, Call *call);
    void (*release)(void *userdata); /* always, and last; may be NULL */
    void *userdata;
} WaitOptions;

int waits_new(Waits **ret);
Waits *waits_free(Waits *waits);
DEFINE_CLEANUP(Waits *, waits_free);

/* Looks at once. Without memory -ENOMEM, and then it is released too. */
int waits_add(Waits *waits, Call *call, const WaitOptions *options);
/* At all of them. */
void waits_check(Waits *waits);
