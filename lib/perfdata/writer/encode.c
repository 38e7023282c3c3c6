/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer/encode.h"

#include "perfdata/feature/environment.h"
#include "util/macro.h"

/*
 * Encoders without state. All attrs of a file have one size, because perf looks for an event's ids
 * after attr.size while others use the section's entry size: both must be the same. perf 6.1
 * rejects attrs above 128 bytes, so zeros beyond that are not written.
 */

enum {
    ATTR_SIZE_OLD = 128, /* PERF_ATTR_SIZE_VER7 */
    NAME_ALIGN = 64,     /* of perf's strings */
    BUILD_ID_MAX = 20,
    BUILD_ID_ROOM = 24, /* struct perf_record_header_build_id: id, its size, reserve */
    FILENAME_MAX_BYTES = 4096,
};

uint32_t pd_encode_attr_size(const PdEvent *event) {
    size_t n = event->raw_size;

    if (!event->raw || n < PD_ATTR_SIZE_MIN)
        return pd_attr_size_needed(&event->attr);
    while (n > ATTR_SIZE_OLD && event->raw[n - 1] == 0)
        n--;
    return (uint32_t)ALIGN8(n);
}

uint32_t pd_encode_attrs_size(const PdEvents *events) {
    uint32_t size = PD_ATTR_SIZE_MIN;

    for (size_t i = 0; i < pd_events_count(events); i++)
        size = MAX(size, pd_encode_attr_size(pd_events_at(events, i)));
    return size;
}

void pd_encode_attr(Buffer *out, const PdEvent *event, uint32_t size, bool swap) {
    size_t start = out->size, n = MIN(event->raw_size, (size_t)size);

    if (!event->raw || event->raw_size < PD_ATTR_SIZE_MIN) {
        pd_attr_encode(&event->attr, size, out, swap);
        return;
    }
    buffer_append(out, event->raw, n);
    buffer_zero(out, size - n);
    if (buffer_error(out) == 0)
        store_u32(out->data + start + 4, size, swap);
}

static void encode_string(Buffer *out, const char *s, bool swap) {
    size_t n = strlen(s), room = (n + 1 + NAME_ALIGN - 1) / NAME_ALIGN * NAME_ALIGN;

    buffer_u32(out, (uint32_t)room, swap);
    buffer_append(out, s, n);
    buffer_zero(out, room - n);
}

void pd_encode_event_desc(Buffer *out, const PdEvents *events, bool swap) {
    uint32_t attr_size = pd_encode_attrs_size(events);

    buffer_u32(out, (uint32_t)pd_events_count(events), swap);
    buffer_u32(out, attr_size, swap);
    for (size_t i = 0; i < pd_events_count(events); i++) {
        const PdEvent *event = pd_events_at(events, i);

        pd_encode_attr(out, event, attr_size, swap);
        buffer_u32(out, (uint32_t)event->n_ids, swap);
        encode_string(out, event->name, swap);
        for (size_t k = 0; k < event->n_ids; k++)
            buffer_u64(out, event->ids[k], swap);
    }
}

static uint32_t encode_count_members(const PdEvents *events, uint32_t leader) {
    uint32_t n = 0;

    for (size_t i = 0; i < pd_events_count(events); i++)
        n += pd_events_at(events, i)->leader == leader;
    return n;
}

void pd_encode_group_desc(Buffer *out, const PdEvents *events, bool swap) {
    uint32_t n = 0;

    for (uint32_t i = 0; i < pd_events_count(events); i++)
        n += encode_count_members(events, i) > 1;
    if (n == 0)
        return;
    buffer_u32(out, n, swap);
    for (uint32_t i = 0; i < pd_events_count(events); i++) {
        uint32_t members = encode_count_members(events, i);

        if (members < 2)
            continue;
        /* perf's placeholder for a group without a name. */
        encode_string(out, "{anon_group}", swap);
        buffer_u32(out, i, swap);
        buffer_u32(out, members, swap);
    }
}

void pd_encode_sample_time(Buffer *out, uint64_t first, uint64_t last, bool swap) {
    buffer_u64(out, first, swap);
    buffer_u64(out, last, swap);
}

void pd_encode_compressed(Buffer *out, uint32_t level, uint32_t ratio, uint32_t frame_raw_max,
                          bool swap) {
    buffer_u32(out, 1, swap);
    buffer_u32(out, PD_COMPRESSED_ZSTD, swap);
    buffer_u32(out, level, swap);
    buffer_u32(out, ratio, swap);
    buffer_u32(out, (frame_raw_max + 4095) / 4096 * 4096, swap);
}

void pd_encode_build_id(Buffer *out, uint32_t pid, uint16_t cpumode, Bytes build_id, Bytes filename,
                        bool swap) {
    size_t n_id = MIN(build_id.size, (size_t)BUILD_ID_MAX);
    size_t n_name = MIN(filename.size, (size_t)FILENAME_MAX_BYTES - 1);
    size_t room = (n_name + 1 + NAME_ALIGN - 1) / NAME_ALIGN * NAME_ALIGN;
    size_t size = PD_RECORD_HEADER_SIZE + 4 + BUILD_ID_ROOM + room;
    size_t padded = ALIGN8(size);

    buffer_u32(out, 0, swap);
    buffer_u16(out, cpumode | PD_MISC_BUILD_ID_SIZE, swap);
    buffer_u16(out, (uint16_t)padded, swap);
    buffer_u32(out, pid, swap);
    buffer_append(out, build_id.data, n_id);
    buffer_zero(out, BUILD_ID_MAX - n_id);
    buffer_append(out, (const uint8_t[4]){(uint8_t)n_id}, BUILD_ID_ROOM - BUILD_ID_MAX);
    buffer_append(out, filename.data, n_name);
    buffer_zero(out, padded - (size - room) - n_name);
}

int pd_encode_coverage(Buffer *out, const PdCoverage *coverage, bool swap) {
    const PdEnvironment environment = {.has = {[PD_FEATURE_PROFD_COVERAGE] = true},
                                       .coverage = *coverage};

    return pd_environment_write(&environment, PD_FEATURE_PROFD_COVERAGE, out, swap);
}
