/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"
#include "reduce/code-map.h"
#include "util/macro.h"

/* From a perf map or a jitdump that a stranger wrote to lines, which must be within the limit,
 * without control characters, and the same when they are read again. */

enum { LIMIT = 1 << 20 };

static int64_t read_file(void *userdata, uint64_t offset, void *to, size_t n) {
    const Bytes *file = userdata;
    size_t left = offset < file->size ? file->size - (size_t)offset : 0;

    n = MIN(n, left);
    if (n > 0)
        memcpy(to, file->data + offset, n);
    return (int64_t)n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Bytes file = {.data = data, .size = size}, lines;
    ReduceSource source = {.read = read_file, .userdata = &file};
    _cleanup_(buffer_done) Buffer map = {}, again = {};

    if (code_map_read(&source, LIMIT, &map) < 0) {
        if (map.size > 0)
            abort();
        return 0;
    }
    lines = buffer_bytes(&map);
    for (size_t i = 0; i < lines.size; i++)
        if (lines.data[i] < 0x20 && lines.data[i] != '\n')
            abort();
    source.userdata = &lines;
    if (lines.size > LIMIT || code_map_read(&source, LIMIT, &again) < 0 ||
        !bytes_equal(buffer_bytes(&again), lines))
        abort();
    return 0;
}
