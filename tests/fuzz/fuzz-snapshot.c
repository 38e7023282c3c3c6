/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "store/snapshot/snapshot-private.h"

/* The manifest of a snapshot, of any bytes. What is taken for one must come back as the same when
 * it is written, and its texts must end. Input: the file. */

static void check_texts(const Kept *kept) {
    const SnapshotInfo *info = &kept->info;

    fuzz_touch((const uint8_t *)kept->boot, strlen(kept->boot));
    fuzz_touch((const uint8_t *)info->name, strlen(info->name));
    fuzz_touch((const uint8_t *)info->session, strlen(info->session));
    fuzz_touch((const uint8_t *)info->reason, strlen(info->reason));
    if (info->n_partial > SNAPSHOT_PARTIAL_MAX)
        abort();
    for (size_t i = 0; i < info->n_partial; i++)
        fuzz_touch((const uint8_t *)info->partial[i], strlen(info->partial[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_(buffer_done) Buffer a = {}, b = {};
    Kept first = {}, second = {};

    if (snapshot_manifest_decode((Bytes){.data = data, .size = size}, &first) < 0)
        return 0;
    check_texts(&first);
    if (snapshot_manifest_encode(&first, &a) < 0 ||
        snapshot_manifest_decode(buffer_bytes(&a), &second) < 0 ||
        snapshot_manifest_encode(&second, &b) < 0)
        abort();
    if (!bytes_equal(buffer_bytes(&a), buffer_bytes(&b)))
        abort();
    return 0;
}
