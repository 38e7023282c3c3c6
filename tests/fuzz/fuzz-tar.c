/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "archive/tar-reader.h"
#include "fuzz.h"

/* Archives, plain or compressed: every entry is read to its end. What is read is bounded here,
 * since a compressed archive may be long and valid. */

enum { READ_MAX = 1 << 20 };

typedef struct Rest {
    const uint8_t *data;
    size_t size;
} Rest;

static ssize_t take(void *data, size_t size, void *arg) {
    Rest *rest = arg;
    size_t n = MIN(size, rest->size);

    if (n > 0)
        memcpy(data, rest->data, n);
    rest->data += n;
    rest->size -= n;
    return (ssize_t)n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_(tar_reader_freep) TarReader *tar = NULL;
    Rest rest = {data, size};
    TarEntry entry;
    size_t total = 0;
    ssize_t n = 1;

    if (tar_reader_new(take, &rest, &tar) < 0)
        return 0;
    while (n >= 0 && total < READ_MAX && tar_reader_next(tar, &entry) > 0) {
        uint8_t block[1000];
        uint64_t left = entry.size;

        if (strlen(entry.name) > TAR_NAME_MAX)
            abort();
        while (total < READ_MAX && (n = tar_reader_read(tar, block, sizeof(block))) > 0) {
            fuzz_touch(block, (size_t)n);
            if ((uint64_t)n > left)
                abort();
            left -= (uint64_t)n;
            total += (size_t)n;
        }
    }
    return 0;
}
