/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A program whose own functions have rows in .debug_frame alone, as compilers make them without
 * asynchronous unwind tables. What the C library adds to each program has .eh_frame.
 */

__attribute__((noinline)) static int compare(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

__attribute__((noinline)) static size_t sum(char **words, int n) {
    size_t total = 0;

    for (int i = 0; i < n; i++)
        total += strlen(words[i]);
    return total;
}

int main(int argc, char **argv) {
    qsort(argv, (size_t)argc, sizeof(*argv), compare);
    printf("%zu\n", sum(argv, argc));
    return EXIT_SUCCESS;
}
