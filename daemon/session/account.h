/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a recorder and a session have done and what that has cost so far. The difference of two
 * accounts is the cost of a segment. */

#include "capture/sampler/sampler.h"
#include "stack/unwinder.h"
#include "tracker/tracker.h"

typedef struct Account {
    uint64_t samples, lost;
    UnwinderCounts stacks;
    uint64_t raw_bytes, stored_bytes;
    uint64_t throttles, throttled_ns;
    uint64_t sweeps, drain_ns;
    uint64_t cpu_ns;       /* of all processes of profd */
    uint64_t scan_ns;      /* the part of cpu_ns that reads /proc and ELF files, and the keeper's */
    uint64_t memory_bytes; /* resident memory of the recorder; a level, so the difference keeps
                            * the newer value */
} Account;

/* Our resident memory. */
uint64_t account_memory_bytes(void);
/* The CPU time of all processes of profd, and the part of it for reading /proc and ELF files. */
uint64_t account_cpu_ns(const Tracker *tracker);
uint64_t account_scan_ns(const Tracker *tracker);
/* Fills in the fields that the sampler, the tracker and the system know. */
void account_take(Account *account, const SamplerSession *sampler, const Tracker *tracker);
/* Subtracts `from` from `to`, except memory_bytes, which is that of `to`. */
Account account_between(const Account *from, const Account *to);
