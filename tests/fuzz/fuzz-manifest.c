/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "fuzz.h"
#include "store/manifest/manifest.h"
#include "util/buffer.h"

/* A manifest of any bytes. What is taken for one must come back as the same when it is written.
 * Input: the file. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_(manifest_freep) Manifest *first = NULL, *second = NULL;
    _cleanup_(buffer_done) Buffer a = {}, b = {};

    if (manifest_decode((Bytes){.data = data, .size = size}, &first) < 0)
        return 0;
    if (manifest_encode(first, &a) < 0 || manifest_decode(buffer_bytes(&a), &second) < 0 ||
        manifest_encode(second, &b) < 0)
        abort();
    if (!bytes_equal(buffer_bytes(&a), buffer_bytes(&b)))
        abort();
    return 0;
}
