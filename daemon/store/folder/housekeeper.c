/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/folder/housekeeper.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/thread.h"

/*
 * Two lists under one mutex: chores that wait and chores that are done. An eventfd makes the main
 * thread collect those that are done. The thread touches nothing but these lists.
 */

enum { WAITING_MAX = 64, UNPRIVILEGED_MAX = 48, END_SEC = 5 };

typedef struct Item {
    STAILQ_ENTRY(Item) list;
    Chore chore;
} Item;

typedef STAILQ_HEAD(ItemList, Item) ItemList;

struct Housekeeper {
    pthread_t thread;
    bool is_running;
    int event;
    LoopSource *source;
    pthread_mutex_t mutex;
    pthread_cond_t wake, ended;
    bool ending, has_ended;
    ItemList waiting, done;
    unsigned n_waiting;
};

static Item *housekeeper_take_first(ItemList *list) {
    Item *item = STAILQ_FIRST(list);

    if (item)
        STAILQ_REMOVE_HEAD(list, list);
    return item;
}

static void *housekeeper_run(void *userdata) {
    Housekeeper *housekeeper = userdata;
    uint64_t one = 1;

    pthread_mutex_lock(&housekeeper->mutex);
    while (!housekeeper->ending) {
        Item *item = housekeeper_take_first(&housekeeper->waiting);

        if (!item) {
            pthread_cond_wait(&housekeeper->wake, &housekeeper->mutex);
            continue;
        }
        housekeeper->n_waiting--;
        pthread_mutex_unlock(&housekeeper->mutex);
        item->chore.work(item->chore.userdata);
        pthread_mutex_lock(&housekeeper->mutex);
        STAILQ_INSERT_TAIL(&housekeeper->done, item, list);
        (void)!write(housekeeper->event, &one, sizeof(one));
    }
    housekeeper->has_ended = true;
    pthread_cond_signal(&housekeeper->ended);
    pthread_mutex_unlock(&housekeeper->mutex);
    return NULL;
}

/* `all`: including the chores that were not started. */
static void housekeeper_deliver(Housekeeper *housekeeper, bool all) {
    for (;;) {
        Item *item;

        pthread_mutex_lock(&housekeeper->mutex);
        item = housekeeper_take_first(&housekeeper->done);
        if (!item && all)
            item = housekeeper_take_first(&housekeeper->waiting);
        pthread_mutex_unlock(&housekeeper->mutex);
        if (!item)
            return;
        item->chore.done(item->chore.userdata);
        free(item);
    }
}

static int housekeeper_on_event(void *userdata) {
    Housekeeper *housekeeper = userdata;
    uint64_t n;

    (void)!read(housekeeper->event, &n, sizeof(n));
    housekeeper_deliver(housekeeper, false);
    return 0;
}

static void housekeeper_init(Housekeeper *housekeeper) {
    pthread_condattr_t monotonic;

    STAILQ_INIT(&housekeeper->waiting);
    STAILQ_INIT(&housekeeper->done);
    pthread_mutex_init(&housekeeper->mutex, NULL);
    pthread_cond_init(&housekeeper->wake, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&housekeeper->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    housekeeper->event = -1;
}

static int housekeeper_start(Housekeeper *housekeeper, Loop *loop, const char *name) {
    int r;

    housekeeper->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (housekeeper->event < 0)
        return -errno;
    r = loop_add_readable(loop, housekeeper->event, housekeeper_on_event, housekeeper,
                          &housekeeper->source);
    if (r < 0)
        return r;
    r = thread_start(&(ThreadOptions){.name = name, .nice = THREAD_NICE_USUAL}, housekeeper_run,
                     housekeeper, &housekeeper->thread);
    housekeeper->is_running = r == 0;
    return r;
}

int housekeeper_new(Loop *loop, const char *name, Housekeeper **ret) {
    Housekeeper *housekeeper = calloc(1, sizeof(*housekeeper));
    int r;

    if (!housekeeper)
        return -ENOMEM;
    housekeeper_init(housekeeper);
    r = housekeeper_start(housekeeper, loop, name);
    if (r < 0) {
        housekeeper_free(housekeeper, NULL);
        return r;
    }
    *ret = housekeeper;
    return 0;
}

static bool housekeeper_end_thread(Housekeeper *housekeeper) {
    uint64_t until = clock_monotonic_ns() + END_SEC * NS_PER_SECOND;
    const struct timespec at = {.tv_sec = (time_t)(until / NS_PER_SECOND),
                                .tv_nsec = (long)(until % NS_PER_SECOND)};
    bool has_ended;
    int r = 0;

    if (!housekeeper->is_running)
        return true;
    pthread_mutex_lock(&housekeeper->mutex);
    housekeeper->ending = true;
    pthread_cond_signal(&housekeeper->wake);
    while (!housekeeper->has_ended && r == 0)
        r = pthread_cond_timedwait(&housekeeper->ended, &housekeeper->mutex, &at);
    has_ended = housekeeper->has_ended;
    pthread_mutex_unlock(&housekeeper->mutex);
    if (has_ended)
        (void)pthread_join(housekeeper->thread, NULL);
    else
        (void)pthread_detach(housekeeper->thread);
    return has_ended;
}

Housekeeper *housekeeper_free(Housekeeper *housekeeper, bool *ret_is_over) {
    bool is_over = !housekeeper || housekeeper_end_thread(housekeeper);

    if (ret_is_over)
        *ret_is_over = is_over;
    if (!housekeeper)
        return NULL;
    loop_source_free(housekeeper->source);
    housekeeper_deliver(housekeeper, true);
    /* The thread hangs in the kernel and may still wake up, so leak the struct. */
    if (!is_over)
        return NULL;
    closep(&housekeeper->event);
    pthread_mutex_destroy(&housekeeper->mutex);
    pthread_cond_destroy(&housekeeper->wake);
    pthread_cond_destroy(&housekeeper->ended);
    free(housekeeper);
    return NULL;
}

int housekeeper_add(Housekeeper *housekeeper, const Chore *chore, bool privileged) {
    Item *item = malloc(sizeof(*item));
    bool has_room;

    if (!item)
        return -ENOMEM;
    item->chore = *chore;
    pthread_mutex_lock(&housekeeper->mutex);
    has_room = housekeeper->n_waiting < (privileged ? WAITING_MAX : UNPRIVILEGED_MAX);
    if (has_room) {
        STAILQ_INSERT_TAIL(&housekeeper->waiting, item, list);
        housekeeper->n_waiting++;
    }
    pthread_cond_signal(&housekeeper->wake);
    pthread_mutex_unlock(&housekeeper->mutex);
    if (has_room)
        return 0;
    free(item);
    return -EBUSY;
}
