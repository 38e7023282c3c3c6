/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Deletes segments on request, on a thread of its own. */

#include "loop/loop.h"
#include "store/folder/store.h"

typedef struct Vacuum Vacuum;

typedef struct VacuumResult {
    int error; /* the first error; 0: none */
    uint64_t removed, bytes;
} VacuumResult;

/* on_end runs on the main thread when a vacuum is over. */
int vacuum_new(Store *store, Loop *loop, void (*on_end)(void *userdata, const VacuumResult *result),
               void *userdata, Vacuum **ret);
/* A running vacuum stops after its current segment; its call gets no answer. */
Vacuum *vacuum_free(Vacuum *vacuum);
DEFINE_CLEANUP(Vacuum *, vacuum_free);

/* Copies the limits. -EBUSY: another vacuum is running. */
int vacuum_begin(Vacuum *vacuum, const StoreLimits *limits, uint64_t *ret_number);
/* The result of the last vacuum; false when its number is not this one. */
bool vacuum_result(const Vacuum *vacuum, uint64_t number, VacuumResult *ret);
