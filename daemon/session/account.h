/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a recorder and a session have done and cost so far; two of them give what a segment cost. */

#include "capture/sampler/sampler.h"
#include "tracker/tracker.h"

typedef struct Account {
    uint64_t samples, lost;
    uint64_t raw_bytes, stored_bytes;
    uint64_t throttles, throttled_ns;
    uint64_t sweeps, drain_ns;
    uint64_t cpu_ns;       /* of all processes of profd */
    uint64_t scan_ns;      /* of it, to read /proc and programs, and the keeper's */
    uint64_t memory_bytes; /* resident, of the whole recorder; no sum */
} Account;

/* The memory that we hold. */
uint64_t account_memory_bytes(void);
/* The CPU time that all processes of profd have used, and how much of it was for reading /proc and
 * programs. */
uint64_t account_cpu_ns(const Tracker *tracker);
uint64_t account_scan_ns(const Tracker *tracker);
/* Fills in what the sampler and the system know. */
void account_take(Account *account, const SamplerSession *sampler, const Tracker *tracker);
/* `to` less `from`; memory as of `to`. */
Account account_between(const Account *from, const Account *to);
