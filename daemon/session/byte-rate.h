/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How many bytes a second may pass, over a while: a second's worth may come at once. */

#include <stdbool.h>
#include <stdint.h>

typedef struct ByteRate {
    uint64_t limit; /* a second; 0: none */
    int64_t left;
    uint64_t filled_ns;
} ByteRate;

/* From now on; what was taken before is forgotten. */
void byte_rate_set(ByteRate *rate, uint64_t limit, uint64_t now_ns);
/* Whether all of them may pass. */
bool byte_rate_pass(ByteRate *rate, uint64_t bytes, uint64_t now_ns);
