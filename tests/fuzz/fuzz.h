/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The function that every fuzzer defines, and a way to make a sanitizer look at bytes nobody else
 * looks at. */

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_touch(const uint8_t *data, size_t size) {
    volatile uint8_t sum = 0;

    for (size_t i = 0; i < size; i++)
        sum = (uint8_t)(sum ^ data[i]);
}
