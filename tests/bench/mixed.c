/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A program of the usual kind for the bench of stacks: its time is in the C library, which it calls
 * from functions of its own. It is built with frame pointers (mixed-fp) and without them
 * (mixed-bare).
 *
 * Usage: mixed; it runs until it is killed
 */

enum { WORDS = 2000, WORD_BYTES = 32, DEPTH = 6 };

static volatile uint64_t sink;

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

__attribute__((noinline)) static void fill(char **words, uint64_t seed) {
    for (unsigned i = 0; i < WORDS; i++) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        words[i] = malloc(WORD_BYTES);
        if (!words[i])
            abort();
        (void)snprintf(words[i], WORD_BYTES, "%.3f %u", (double)(seed >> 40) / 3, i);
    }
}

__attribute__((noinline)) static double sum(char **words) {
    double total = 0;

    for (unsigned i = 0; i < WORDS; i++) {
        total += strtod(words[i], NULL);
        free(words[i]);
    }
    return total;
}

__attribute__((noinline)) static uint64_t one_round(unsigned depth, uint64_t seed) {
    static char *words[WORDS];

    if (depth > 0)
        return one_round(depth - 1, seed * 3) + 1;
    fill(words, seed);
    qsort(words, WORDS, sizeof(words[0]), compare);
    return (uint64_t)sum(words);
}

int main(void) {
    for (uint64_t i = 0;; i++)
        sink += one_round(i % DEPTH, i);
}
