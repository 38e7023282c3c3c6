/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/folder/lease.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/folder/store-private.h"

/* A segment that is being read; its bytes count as used while it is in this list. */
struct StoreLease {
    LIST_ENTRY(StoreLease) list;
    Store *store;
    char session[CONFIG_NAME_MAX];
    uint64_t number;
    uint64_t bytes; /* set once the file is deleted, in only one of the segment's leases */
};

/* A list is enough, since there are few readers. The number identifies a segment, because numbers
 * are never reused. */

static bool lease_is_of(const StoreLease *lease, const char *session, uint64_t number) {
    return lease->number == number && strcmp(lease->session, session) == 0;
}

int store_lease_new(Store *store, const char *session, uint64_t number, StoreLease **ret) {
    StoreLease *lease = calloc(1, sizeof(*lease));

    if (!lease)
        return -ENOMEM;
    lease->store = store;
    lease->number = number;
    snprintf(lease->session, sizeof(lease->session), "%s", session);
    pthread_mutex_lock(&store->mutex);
    LIST_INSERT_HEAD(&store->leases, lease, list);
    pthread_mutex_unlock(&store->mutex);
    *ret = lease;
    return 0;
}

static StoreLease *lease_find(Store *store, const char *session, uint64_t number) {
    StoreLease *lease;

    LIST_FOREACH(lease, &store->leases, list)
        if (lease_is_of(lease, session, number))
            break;
    return lease;
}

bool store_lease_keep(Store *store, const char *session, uint64_t number, uint64_t bytes) {
    StoreLease *lease = lease_find(store, session, number);

    if (!lease)
        return false;
    lease->bytes += bytes;
    store->leased_bytes += bytes;
    return true;
}

StoreLease *store_lease_free(StoreLease *lease) {
    StoreLease *heir;
    Store *store;

    if (!lease)
        return NULL;
    store = lease->store;
    pthread_mutex_lock(&store->mutex);
    LIST_REMOVE(lease, list);
    heir = lease_find(store, lease->session, lease->number);
    if (heir) {
        heir->bytes += lease->bytes;
    } else {
        store->leased_bytes -= lease->bytes;
        store->fs_free += lease->bytes;
    }
    pthread_mutex_unlock(&store->mutex);
    free(lease);
    return NULL;
}
