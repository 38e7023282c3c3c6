/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Limits the bytes per second, averaged over time: a burst of one second's worth may pass at
 * once. */

#include <stdbool.h>
#include <stdint.h>

typedef struct ByteRate {
    uint64_t limit; /* bytes per second; 0: no limit */
    int64_t left;
    uint64_t filled_ns;
} ByteRate;

/* Starts with a full second's worth and forgets what passed before. */
void byte_rate_set(ByteRate *rate, uint64_t limit, uint64_t now_ns);
/* Returns whether all of these bytes may pass. */
bool byte_rate_pass(ByteRate *rate, uint64_t bytes, uint64_t now_ns);
