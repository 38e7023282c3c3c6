/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Deletes segments at somebody's word without keeping the main thread from its work. */

#include "loop/loop.h"
#include "store/folder/store.h"

typedef struct Vacuum Vacuum;

typedef struct VacuumResult {
    int error; /* the first one */
    uint64_t removed, bytes;
} VacuumResult;

/* on_end: one is over, on the main thread. */
int vacuum_new(Store *store, Loop *loop, void (*on_end)(void *userdata, const VacuumResult *result),
               void *userdata, Vacuum **ret);
/* What is under way ends with the segment that it is at, without a call. */
Vacuum *vacuum_free(Vacuum *vacuum);
DEFINE_CLEANUP(Vacuum *, vacuum_free);

/* Limits are copied. -EBUSY: another one is under way. */
int vacuum_begin(Vacuum *vacuum, const StoreLimits *limits, uint64_t *ret_number);
/* Of the last one that is over; false where that is not it. */
bool vacuum_result(const Vacuum *vacuum, uint64_t number, VacuumResult *ret);
