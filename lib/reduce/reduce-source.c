/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reduce/reduce-source.h"

#include <errno.h>

/* Reads that may be short, as those of a file are, become whole ones. */

int reduce_read(const ReduceSource *source, uint64_t offset, void *to, size_t n) {
    size_t done = 0;

    if (offset > INT64_MAX || n > INT64_MAX - offset)
        return -EBADMSG;
    while (done < n) {
        int64_t got = source->read(source->userdata, offset + done, (uint8_t *)to + done, n - done);

        if (got <= 0)
            return got < 0 ? (int)got : -EBADMSG;
        done += (size_t)got;
    }
    return 0;
}
