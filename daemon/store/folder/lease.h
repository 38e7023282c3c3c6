/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who reads a segment holds a lease of it. Retention may take its name away meanwhile, but what it
 * takes on the disk counts until the last lease of it ends. From any thread.
 */

#include "store/disk/segment-name.h"
#include "store/folder/store.h"

int store_lease_new(Store *store, const char *session, uint64_t number, StoreLease **ret);
StoreLease *store_lease_free(StoreLease *lease);
DEFINE_CLEANUP(StoreLease *, store_lease_free);
