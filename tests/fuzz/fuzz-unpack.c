/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"
#include "symbol/elf/unpack.h"

/* The compressed file of a stranger, such as a module of the kernel or the names within a stripped
 * program: never more than the limit comes out, and a piece. */

enum { OUTPUT_MAX = 1 << 20, PIECE = 256 << 10 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int (*const unpack[])(Bytes packed, size_t max, Buffer * ret) = {unpack_xz, unpack_zstd,
                                                                            unpack_gzip};
    const Bytes packed = {.data = data, .size = size};

    for (size_t i = 0; i < ARRAY_SIZE(unpack); i++) {
        _cleanup_(buffer_done) Buffer plain = {};

        (void)unpack[i](packed, OUTPUT_MAX, &plain);
        if (plain.size > OUTPUT_MAX + PIECE)
            abort();
        fuzz_touch(plain.data, plain.size);
    }
    return 0;
}
