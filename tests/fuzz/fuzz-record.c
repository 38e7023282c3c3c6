/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "fuzz.h"
#include "perfdata/describe/record-describe.h"
#include "perfdata/feature/environment.h"

/*
 * One record of an event of any shape. Input: a byte of flags (bit 0: the other byte order), a
 * perf_event_attr of 128 bytes, the record. The record lies in an allocation of exactly its size,
 * so that reading a byte too far is seen.
 */

enum { ATTR_BYTES = 128, PREFIX = 1 + ATTR_BYTES };

static int add_event(PdEvents *events, const uint8_t *data, bool swap, PdEvent **ret) {
    Bytes raw = {.data = data, .size = ATTR_BYTES};
    static const uint64_t id = 1;
    PdAttr attr;
    int r = pd_attr_parse(&attr, raw, swap);

    return r < 0 ? r : pd_events_add(events, &attr, raw, &id, 1, ret);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    _cleanup_(buffer_done) Buffer out = {};
    _cleanup_free_ uint8_t *copy = NULL;
    PdEvent *event;
    PdStamp stamp;
    PdBody body;
    bool swap;

    if (size < PREFIX + PD_RECORD_HEADER_SIZE || size - PREFIX > PD_RECORD_SIZE_MAX)
        return 0;
    swap = data[0] & 1;
    if (pd_events_new(&events) < 0 || add_event(events, data + 1, swap, &event) < 0)
        return 0;
    size -= PREFIX;
    copy = malloc(size);
    if (!copy)
        return 0;
    memcpy(copy, data + PREFIX, size);
    for (unsigned json = 0; json < 2; json++) {
        Fields fields = fields_to(&out, json ? FIELDS_JSON : FIELDS_TEXT);
        PdRecord record = {.type = load_u32(copy, swap) % 100,
                           .misc = load_u16(copy + 4, swap),
                           .swap = swap,
                           .size = (uint32_t)size,
                           .data = copy};

        if (pd_events_stamp(events, &record, &stamp) < 0)
            stamp = (PdStamp){.event = event};
        (void)pd_record_parse(&record, event, &body);
        buffer_clear(&out);
        fields_begin_object(&fields, NULL);
        pd_record_describe(&record, &stamp, NULL, &fields);
        fields_end_object(&fields);
    }
    pd_attr_name(&event->attr, &out);
    return 0;
}
