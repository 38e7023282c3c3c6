/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "store/disk/dirfd.h"
#include "store/writer/session-private.h"
#include "util/log.h"

/*
 * Assigns folders to sessions. The writer of a session claims its folder first, since creating and
 * listing it may take a slow disk a while, and releases it last. Until then a session of the same
 * name waits, as it does for a writer that recovers the folder.
 */

static int claim_find_or_make(Store *store, const char *name, Folder **ret) {
    int r = 0;

    pthread_mutex_lock(&store->disk);
    pthread_mutex_lock(&store->mutex);
    *ret = store_folder(store, name);
    pthread_mutex_unlock(&store->mutex);
    if (!*ret)
        r = store_folder_new(store, name, ret);
    pthread_mutex_unlock(&store->disk);
    return r;
}

/* Call it with the store's mutex held. */
static bool claim_is_given_up(StoreSession *s) {
    bool given_up;

    pthread_mutex_lock(&s->mutex);
    given_up = s->given_up;
    pthread_mutex_unlock(&s->mutex);
    return given_up;
}

/* Waits until no other session has the folder. */
static int claim_take(StoreSession *s, Folder *folder, bool *ret_abandoned) {
    Store *store = s->store;
    int r;

    pthread_mutex_lock(&store->mutex);
    while ((folder->stray || folder->claimed) && !claim_is_given_up(s))
        pthread_cond_wait(&store->recovered, &store->mutex);
    r = folder->stray || folder->claimed ? -ECANCELED : 0;
    if (r == 0) {
        *ret_abandoned = folder->abandoned;
        folder->recovered &= !folder->abandoned;
        folder->abandoned = false;
        folder->claimed = true;
        folder->sensitive = s->sensitive;
    }
    pthread_mutex_unlock(&store->mutex);
    return r;
}

/* Marks the folder, so that the next profd knows that the session is not in the configuration. */
static void claim_mark_runtime(Store *store, Folder *folder, bool runtime) {
    int r = 0;

    if (folder->runtime == runtime)
        return;
    if (runtime)
        r = dirfd_write(folder->fd, RUNTIME_FILE, (Bytes){});
    else if (unlinkat(folder->fd, RUNTIME_FILE, 0) < 0)
        r = -errno;
    if (r < 0)
        log_debug("Failed to mark the folder of session '%s', a restart forgets the change",
                  folder->name);
    pthread_mutex_lock(&store->mutex);
    folder->runtime = runtime;
    pthread_mutex_unlock(&store->mutex);
}

/* From here on the main thread may use the folder. */
static void claim_publish(StoreSession *s, Folder *folder) {
    pthread_mutex_lock(&s->store->mutex);
    s->first_number = folder->next_number;
    folder->session = s;
    pthread_mutex_lock(&s->mutex);
    folder_configure(folder, &s->config);
    s->folder = folder;
    s->opened = 1;
    pthread_cond_broadcast(&s->ended);
    pthread_mutex_unlock(&s->mutex);
    pthread_mutex_unlock(&s->store->mutex);
}

int session_claim(StoreSession *s) {
    Store *store = s->store;
    bool abandoned = false;
    Folder *folder = NULL;
    int r = claim_find_or_make(store, s->name, &folder);

    if (r == 0)
        r = claim_take(s, folder, &abandoned);
    if (r < 0)
        return r;
    if (abandoned) {
        pthread_mutex_lock(&store->disk);
        (void)folder_survey(store, folder);
        pthread_mutex_unlock(&store->disk);
    }
    claim_mark_runtime(store, folder, s->config.runtime);
    seal_give(&store->seal, folder->fd, s->name, s->sensitive);
    claim_publish(s, folder);
    return 0;
}

void session_release(StoreSession *s, bool abandoned) {
    Store *store = s->store;

    if (!s->folder)
        return;
    pthread_mutex_lock(&store->mutex);
    s->folder->claimed = false;
    s->folder->session = NULL;
    s->folder->abandoned = abandoned;
    s->folder->open_bytes = 0;
    pthread_cond_broadcast(&store->recovered);
    pthread_mutex_unlock(&store->mutex);
}
