/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "account.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "util/file.h"

/* The sums only grow, so that a difference of two accounts is what came between them. */

static uint64_t ns_of(const struct timeval *t) {
    return (uint64_t)t->tv_sec * 1000000000ULL + (uint64_t)t->tv_usec * 1000;
}

uint64_t account_memory_bytes(void) {
    char text[128];
    uint64_t pages;

    if (file_read_text("/proc/self/statm", text, sizeof(text)) < 0 ||
        sscanf(text, "%*u %" SCNu64, &pages) != 1)
        return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void account_take(Account *account, const SamplerSession *sampler) {
    SamplerCounts counts = sampler_counts(sampler);
    struct rusage usage;

    account->throttles = counts.throttles;
    account->throttled_ns = counts.throttled_ns;
    account->sweeps = counts.sweeps;
    account->drain_ns = counts.drain_ns;
    account->memory_bytes = account_memory_bytes();
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        account->cpu_ns = ns_of(&usage.ru_utime) + ns_of(&usage.ru_stime);
}

Account account_between(const Account *from, const Account *to) {
    return (Account){
        .samples = to->samples - from->samples,
        .lost = to->lost - from->lost,
        .raw_bytes = to->raw_bytes - from->raw_bytes,
        .stored_bytes = to->stored_bytes - from->stored_bytes,
        .throttles = to->throttles - from->throttles,
        .throttled_ns = to->throttled_ns - from->throttled_ns,
        .sweeps = to->sweeps - from->sweeps,
        .drain_ns = to->drain_ns - from->drain_ns,
        .cpu_ns = to->cpu_ns - from->cpu_ns,
        .memory_bytes = to->memory_bytes,
    };
}
