/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdint.h>
#include <stdlib.h>

/*
 * A load with a deep stack of known functions, for benches and tests: 20 frames of this program,
 * linked by frame pointers, under a loop that does not end by itself.
 *
 * Usage: load
 */

enum { DEPTH = 20, ROUNDS = 20000 };

static volatile uint64_t sink;

static uint64_t work_level(unsigned depth, uint64_t x);

/* Two functions that call each other, so that no compiler folds the frames. */
__attribute__((noinline)) static uint64_t work_other(unsigned depth, uint64_t x) {
    return work_level(depth, x * 3) + 1;
}

__attribute__((noinline)) static uint64_t work_level(unsigned depth, uint64_t x) {
    if (depth > 0)
        return work_other(depth - 1, x) + 1;
    for (unsigned i = 0; i < ROUNDS; i++)
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    return x;
}

int main(void) {
    for (;;)
        sink = work_level(DEPTH / 2, sink);
    return EXIT_SUCCESS;
}
