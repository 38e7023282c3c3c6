/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record/sample-place.h"

/* Each field before the call chain takes eight bytes, except READ, whose size differs. */

#define BEFORE_IP PD_SAMPLE_IDENTIFIER
#define BEFORE_CHAIN                                                                               \
    (BEFORE_IP | PD_SAMPLE_IP | PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_ADDR | PD_SAMPLE_ID |   \
     PD_SAMPLE_STREAM_ID | PD_SAMPLE_CPU | PD_SAMPLE_PERIOD)

static size_t sample_place_behind(const PdEvent *event, uint64_t fields) {
    return PD_RECORD_HEADER_SIZE +
           sizeof(uint64_t) * (size_t)__builtin_popcountll(event->attr.sample_type & fields);
}

bool pd_sample_ip(const PdRecord *record, const PdEvent *event, uint64_t *ret) {
    size_t at = sample_place_behind(event, BEFORE_IP);

    if (!(event->attr.sample_type & PD_SAMPLE_IP) || record->size < at + sizeof(uint64_t))
        return false;
    *ret = load_u64(record->data + at, record->swap);
    return true;
}

bool pd_sample_chain(const PdRecord *record, const PdEvent *event, PdU64s *ret) {
    size_t at = sample_place_behind(event, BEFORE_CHAIN);
    uint64_t n;

    if ((event->attr.sample_type & (PD_SAMPLE_CALLCHAIN | PD_SAMPLE_READ)) != PD_SAMPLE_CALLCHAIN ||
        record->size < at + sizeof(uint64_t))
        return false;
    n = load_u64(record->data + at, record->swap);
    at += sizeof(uint64_t);
    if (n > (record->size - at) / sizeof(uint64_t))
        return false;
    *ret = (PdU64s){.data = record->data + at, .n = n, .swap = record->swap};
    return true;
}
