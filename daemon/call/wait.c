/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "call/wait.h"

#include <errno.h>

/*
 * There are few waits, at most one for each connection, so all of them are checked whenever
 * something may have changed. A call that ends may cause other changes, so then all are checked
 * again.
 */

typedef struct Wait Wait;

struct Wait {
    Wait *next;
    Waits *waits;
    Call *call; /* NULL: the wait is over, or its client is gone */
    WaitOptions options;
};

struct Waits {
    Wait *first;
    bool looking, again;
};

int waits_new(Waits **ret) {
    *ret = calloc(1, sizeof(**ret));
    return *ret ? 0 : -ENOMEM;
}

static void wait_free(Wait *wait) {
    if (wait->options.release)
        wait->options.release(wait->options.userdata);
    free(wait);
}

Waits *waits_free(Waits *waits) {
    if (!waits)
        return NULL;
    while (waits->first) {
        Wait *wait = waits->first;

        waits->first = wait->next;
        wait_free(wait);
    }
    free(waits);
    return NULL;
}

static void wait_reap(Waits *waits) {
    for (Wait **at = &waits->first; *at;) {
        Wait *wait = *at;

        if (wait->call) {
            at = &wait->next;
            continue;
        }
        *at = wait->next;
        wait_free(wait);
    }
}

static void wait_on_gone(void *userdata) {
    Wait *wait = userdata;

    wait->call = NULL;
    if (!wait->waits->looking)
        wait_reap(wait->waits);
}

void waits_check(Waits *waits) {
    if (waits->looking) {
        waits->again = true;
        return;
    }
    waits->looking = true;
    do {
        waits->again = false;
        for (Wait *wait = waits->first; wait; wait = wait->next)
            if (wait->call && wait->options.check(wait->options.userdata, wait->call))
                wait->call = NULL;
    } while (waits->again);
    waits->looking = false;
    wait_reap(waits);
}

int waits_add(Waits *waits, Call *call, const WaitOptions *options) {
    Wait *wait = calloc(1, sizeof(*wait));

    if (!wait) {
        if (options->release)
            options->release(options->userdata);
        return -ENOMEM;
    }
    *wait = (Wait){.next = waits->first, .waits = waits, .call = call, .options = *options};
    waits->first = wait;
    call_on_gone(call, wait_on_gone, wait);
    waits_check(waits);
    return 0;
}
