/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "call/wait.h"

#include <errno.h>
#include <sys/queue.h>

/*
 * There are few waits, at most one for each connection, so all of them are checked whenever
 * something may have changed. A call that ends may cause other changes, so then all are checked
 * again.
 */

typedef struct Wait Wait;

struct Wait {
    LIST_ENTRY(Wait) list;
    Waits *waits;
    Call *call; /* NULL: the wait is over, or its client is gone */
    WaitOptions options;
};

struct Waits {
    LIST_HEAD(, Wait) all;
    bool looking, again;
};

int waits_new(Waits **ret) {
    *ret = calloc(1, sizeof(**ret));
    return *ret ? 0 : -ENOMEM;
}

static void wait_free(Wait *wait) {
    LIST_REMOVE(wait, list);
    if (wait->options.release)
        wait->options.release(wait->options.userdata);
    free(wait);
}

Waits *waits_free(Waits *waits) {
    if (!waits)
        return NULL;
    while (!LIST_EMPTY(&waits->all))
        wait_free(LIST_FIRST(&waits->all));
    free(waits);
    return NULL;
}

static void wait_reap(Waits *waits) {
    for (Wait *wait = LIST_FIRST(&waits->all), *next; wait; wait = next) {
        next = LIST_NEXT(wait, list);
        if (!wait->call)
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
        Wait *wait;

        waits->again = false;
        LIST_FOREACH(wait, &waits->all, list)
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
    *wait = (Wait){.waits = waits, .call = call, .options = *options};
    LIST_INSERT_HEAD(&waits->all, wait, list);
    call_on_gone(call, wait_on_gone, wait);
    waits_check(waits);
    return 0;
}
