/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record/record.h"

#include "util/macro.h"

/*
 * The bytes that follow some records without being included in their size: trace data, and the
 * names of tracepoints. In: a record with its body. Out: how many bytes the body announces, any
 * number: who reads them bounds it by the rest of the file.
 */

enum {
    TRACING_DATA_SIZE = 12, /* what perf writes before the payload */
    AUXTRACE_SIZE = 48,
};

uint64_t pd_record_payload_size(const PdRecord *record) {
    const uint8_t *body = record->data + PD_RECORD_HEADER_SIZE;

    if (record->type == PD_RECORD_AUXTRACE && record->size >= AUXTRACE_SIZE)
        return load_u64(body, record->swap);
    if (record->type == PD_RECORD_TRACING_DATA && record->size >= TRACING_DATA_SIZE)
        return ALIGN8((uint64_t)load_u32(body, record->swap));
    return 0;
}

bool pd_record_payload_is_whole(const PdRecord *record) {
    return record->payload == pd_record_payload_size(record);
}
