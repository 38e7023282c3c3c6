/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>

#include "load.h"

/*
 * A known number of functions over one that keeps a CPU busy, without frame pointers, so that the
 * stack can be followed by unwind tables alone.
 *
 * Usage: deep [SECRET]     until killed; SECRET lies on its stack, again and again
 */

enum { DEPTH = 12, TURN = 20000 };

static volatile uint64_t sink;

static uint64_t deep_odd(unsigned depth, uint64_t x);

__attribute__((noinline)) static uint64_t deep_leaf(uint64_t x) {
    for (unsigned i = 0; i < TURN; i++)
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    return x;
}

__attribute__((noinline)) static uint64_t deep_even(unsigned depth, uint64_t x) {
    return (depth > 0 ? deep_odd(depth - 1, x * 3) : deep_leaf(x)) + 1;
}

__attribute__((noinline)) static uint64_t deep_odd(unsigned depth, uint64_t x) {
    return (depth > 0 ? deep_even(depth - 1, x * 5) : deep_leaf(x)) + 1;
}

int main(int argc, char **argv) {
    volatile char secrets[256];
    const char *secret = argc > 1 ? argv[1] : ".";
    size_t length = strlen(secret);

    for (size_t i = 0; i < sizeof(secrets); i++)
        secrets[i] = secret[i % length];
    printf("ready\n");
    fflush(stdout);
    for (;;)
        sink = deep_even(DEPTH, sink);
}
