/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/account.h"

#include <inttypes.h>
#include <stdio.h>

#include "util/clock.h"
#include "util/file.h"

/* All sums only grow, so the difference of two accounts is what happened between them. */

uint64_t account_memory_bytes(void) {
    char text[128];
    uint64_t pages;

    if (file_read_text("/proc/self/statm", text, sizeof(text)) < 0 ||
        sscanf(text, "%*u %" SCNu64, &pages) != 1)
        return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t account_scan_ns(const Tracker *tracker) {
    ScannerCpu cpu = tracker_cpu(tracker);

    return cpu.scan_ns + cpu.keeper_ns;
}

/* CLOCK_PROCESS_CPUTIME_ID covers all threads of this process; add the keeper's time. */
uint64_t account_cpu_ns(const Tracker *tracker) {
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID) + tracker_cpu(tracker).keeper_ns;
}

void account_take(Account *account, const SamplerSession *sampler, const Tracker *tracker) {
    SamplerCounts counts = sampler_counts(sampler);

    account->throttles = counts.throttles;
    account->throttled_ns = counts.throttled_ns;
    account->sweeps = counts.sweeps;
    account->drain_ns = counts.drain_ns;
    account->memory_bytes = account_memory_bytes();
    account->cpu_ns = account_cpu_ns(tracker);
    account->scan_ns = account_scan_ns(tracker);
}

Account account_between(const Account *from, const Account *to) {
    Account between = {
        .samples = to->samples - from->samples,
        .lost = to->lost - from->lost,
        .raw_bytes = to->raw_bytes - from->raw_bytes,
        .stored_bytes = to->stored_bytes - from->stored_bytes,
        .throttles = to->throttles - from->throttles,
        .throttled_ns = to->throttled_ns - from->throttled_ns,
        .sweeps = to->sweeps - from->sweeps,
        .drain_ns = to->drain_ns - from->drain_ns,
        .cpu_ns = to->cpu_ns - from->cpu_ns,
        .scan_ns = to->scan_ns - from->scan_ns,
        .memory_bytes = to->memory_bytes,
    };

    for (size_t i = 0; i < UNWIND_VERDICTS; i++)
        between.stacks.samples[i] = to->stacks.samples[i] - from->stacks.samples[i];
    return between;
}
