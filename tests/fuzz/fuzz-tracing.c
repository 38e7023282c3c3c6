/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"
#include "perfdata/tracing/tracing.h"
#include "util/macro.h"

/*
 * A TRACING_DATA blob and, as the raw data of a tracepoint, its own tail. Input: the blob.
 */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_(pd_tracing_freep) PdTracing *tracing = NULL;
    _cleanup_(buffer_done) Buffer out = {};

    if (pd_tracing_new((Bytes){.data = data, .size = size}, &tracing) < 0)
        return 0;
    for (uint64_t id = 0; id < 512; id++) {
        Fields fields = fields_to(&out, id % 2 ? FIELDS_JSON : FIELDS_TEXT);
        size_t tail = MIN(size, (size_t)(id * 3 % 97));

        buffer_clear(&out);
        if (!pd_tracing_name(tracing, id))
            continue;
        fields_begin_object(&fields, NULL);
        pd_tracing_describe(tracing, id, (Bytes){.data = data + size - tail, .size = tail},
                            id % 5 == 0, &fields);
        fields_end_object(&fields);
    }
    return 0;
}
