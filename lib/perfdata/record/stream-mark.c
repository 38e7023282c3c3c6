/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record/stream-mark.h"

#include <string.h>

/*
 * perf stops at a record whose type it does not know, but skips EVENT_TYPE, which it has not
 * written for many years. So a mark is such a record, with an id that names no event.
 */

enum { MARK_SIZE = 80, MARK_NAME_SIZE = 16, MARK_BODY_AT = 32 };

static const char mark_names[2][MARK_NAME_SIZE] = {"profd:watermark", "profd:gap"};

void pd_stream_mark_write(Buffer *out, const PdStreamMark *mark) {
    size_t begin = out->size;

    buffer_u32(out, PD_RECORD_EVENT_TYPE, false);
    buffer_u16(out, 0, false);
    buffer_u16(out, MARK_SIZE, false);
    buffer_u64(out, PD_STREAM_MARK_ID, false);
    buffer_append(out, mark_names[mark->is_gap], MARK_NAME_SIZE);
    if (mark->is_gap) {
        buffer_u64(out, mark->gap.from_ns, false);
        buffer_u64(out, mark->gap.to_ns, false);
        buffer_u32(out, mark->gap.cpu, false);
        buffer_u32(out, mark->gap.reason, false);
        buffer_u64(out, mark->real_offset, false);
    } else {
        buffer_u64(out, mark->time, false);
        buffer_u64(out, mark->time + mark->real_offset, false);
    }
    if (buffer_error(out) == 0)
        buffer_zero(out, MARK_SIZE - (out->size - begin));
}

bool pd_stream_mark_read(const PdRecord *record, PdStreamMark *ret) {
    const uint8_t *body = record->data + MARK_BODY_AT;
    PdStreamMark mark = {};

    if (record->type != PD_RECORD_EVENT_TYPE || record->size != MARK_SIZE ||
        load_u64(record->data + PD_RECORD_HEADER_SIZE, record->swap) != PD_STREAM_MARK_ID)
        return false;
    mark.is_gap = memcmp(record->data + 16, mark_names[1], MARK_NAME_SIZE) == 0;
    if (!mark.is_gap && memcmp(record->data + 16, mark_names[0], MARK_NAME_SIZE) != 0)
        return false;
    if (mark.is_gap) {
        uint32_t reason = load_u32(body + 20, record->swap);

        mark.gap = (PdGap){
            .from_ns = load_u64(body, record->swap),
            .to_ns = load_u64(body + 8, record->swap),
            .cpu = load_u32(body + 16, record->swap),
            .reason = reason < PD_GAP_REASONS ? (PdGapReason)reason : PD_GAP_UNKNOWN,
        };
        mark.real_offset = load_u64(body + 24, record->swap);
    } else {
        mark.time = load_u64(body, record->swap);
        mark.real_offset = load_u64(body + 8, record->swap) - mark.time;
    }
    *ret = mark;
    return true;
}
