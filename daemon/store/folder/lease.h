/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A reader of a segment holds a lease on it. Retention may delete the segment meanwhile, but its
 * bytes count until the last lease on it ends. Usable from any thread.
 */

#include "store/disk/segment-name.h"
#include "store/folder/store.h"

int store_lease_new(Store *store, const char *session, uint64_t number, StoreLease **ret);
StoreLease *store_lease_free(StoreLease *lease);
DEFINE_CLEANUP(StoreLease *, store_lease_free);
