/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The open events, each in a slot, with its ring mapped so that it outlives recorders; and memory
 * in which a recorder leaves samples for the next one. */

#include "keeper/request/keeper-request.h"

typedef struct Slots Slots;

int slots_new(Slots **ret);
Slots *slots_free(Slots *slots);
DEFINE_CLEANUP(Slots *, slots_free);

/* Takes a checked request; cgroup_fd -1: none. The slot owns the returned descriptor. */
int slots_open(Slots *slots, const KeeperEventData *event, int cgroup_fd, uint32_t *ret_slot,
               int *ret_fd);
/* Memory instead of an event, as large as ring_bytes says and full of zeros. Its size is sealed. */
int slots_open_memory(Slots *slots, const KeeperEventData *event, uint32_t *ret_slot, int *ret_fd);
int slots_close(Slots *slots, uint32_t slot);
/* The first slot above `slot` (KEEPER_NO_SLOT: the first of all): 1, or 0 at the end. */
int slots_next(const Slots *slots, uint32_t slot, uint32_t *ret_slot, KeeperEventData *ret,
               int *ret_fd);
uint32_t slots_count(const Slots *slots);
