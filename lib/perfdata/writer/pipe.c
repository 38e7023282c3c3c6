/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "perfdata/writer/encode.h"
#include "perfdata/writer/writer-internal.h"
#include "util/macro.h"

/*
 * A pipe stream has records for what a file has in its header: an attr is a HEADER_ATTR, names and
 * units are EVENT_UPDATEs, most features are HEADER_FEATUREs; tracing data and build ids have
 * records of their own. All of them are written uncompressed, so that a reader knows the events
 * before the first sample and the maximum frame size before the first frame.
 *
 * No end mark follows the features: its number in perf 6 is a feature in perf 7, and neither
 * accepts the other's. Only `perf report --group` of a pipe needs it.
 */

enum {
    ATTR_SIZE_FIXED = 128,     /* old readers expect the ids here, whatever attr.size says */
    FEATURE_KNOWN_TO_ALL = 31, /* perf 6.1 stops at a larger one */
    FEATURE_BODY_MAX = UINT16_MAX - PD_RECORD_HEADER_SIZE - 8,
    TRACING_HEADER_SIZE = 16,
    BUILD_ID_SIZE_MIN = 36, /* header, pid and id */
    ATTR_SAMPLE_TYPE_AT = 24,
};

/* Appends a header; pipe_end_record() sets the size. */
static size_t pipe_begin_record(Buffer *out, uint32_t type, bool swap) {
    size_t start = out->size;

    buffer_u32(out, type, swap);
    buffer_u16(out, 0, swap);
    buffer_u16(out, 0, swap);
    return start;
}

static void pipe_end_record(Buffer *out, size_t start, bool swap) {
    if (buffer_error(out) == 0)
        store_u16(out->data + start + 6, (uint16_t)(out->size - start), swap);
}

static int pipe_put(PdWriter *w, const Buffer *records) {
    int r = pd_stream_make_room(&w->streams[0]);

    if (r >= 0)
        r = buffer_error(records);
    return r < 0 ? r : pd_stream_plain(&w->streams[0], records->data, records->size);
}

static void pipe_put_update(Buffer *out, const PdEvent *event, uint64_t kind, const void *data,
                            size_t n, bool swap) {
    size_t start = pipe_begin_record(out, PD_RECORD_EVENT_UPDATE, swap);

    buffer_u64(out, kind, swap);
    buffer_u64(out, event->ids[0], swap);
    buffer_append(out, data, n);
    buffer_zero(out, ALIGN8(n) - n);
    pipe_end_record(out, start, swap);
}

/* perf stat omits IDENTIFIER in a stream, because perf script takes an event that has it for one
 * that samples: it knows the STAT feature, which shows that it does not, only from files. */
static bool pipe_counts_only(const PdWriter *w, const PdEvent *event) {
    return w->features[PD_FEATURE_STAT].set && event->attr.sample_type == PD_SAMPLE_IDENTIFIER &&
           !(event->attr.flags & PD_ATTR_SAMPLE_ID_ALL);
}

int pd_pipe_event(PdWriter *w, const PdEvent *event) {
    _cleanup_(buffer_done) Buffer out = {};
    uint32_t attr_size = MAX(pd_encode_attr_size(event), (uint32_t)ATTR_SIZE_FIXED);
    bool swap = w->options.swap;
    size_t start;

    if (event->n_ids > (PD_RECORD_SIZE_MAX - PD_RECORD_HEADER_SIZE - attr_size) / sizeof(uint64_t))
        return -E2BIG;
    start = pipe_begin_record(&out, PD_RECORD_HEADER_ATTR, swap);
    pd_encode_attr(&out, event, attr_size, swap);
    if (pipe_counts_only(w, event) && buffer_error(&out) == 0)
        store_u64(out.data + start + PD_RECORD_HEADER_SIZE + ATTR_SAMPLE_TYPE_AT, 0, swap);
    for (size_t i = 0; i < event->n_ids; i++)
        buffer_u64(&out, event->ids[i], swap);
    pipe_end_record(&out, start, swap);
    if (event->n_ids > 0 && event->unit)
        pipe_put_update(&out, event, PD_EVENT_UPDATE_UNIT, event->unit, strlen(event->unit) + 1,
                        swap);
    if (event->n_ids > 0 && event->scale != 1 && event->scale != 0) {
        uint64_t scale;

        memcpy(&scale, &event->scale, sizeof(scale));
        store_u64(&scale, scale, swap);
        pipe_put_update(&out, event, PD_EVENT_UPDATE_SCALE, &scale, sizeof(scale), swap);
    }
    if (event->n_ids > 0 && event->name_given)
        pipe_put_update(&out, event, PD_EVENT_UPDATE_NAME, event->name, strlen(event->name) + 1,
                        swap);
    return pipe_put(w, &out);
}

/* The size of the next entry of a BUILD_ID feature, 0 at its end or if it is invalid. */
static size_t pipe_build_id_entry(Bytes body, size_t at, bool swap) {
    size_t size = body.size - at >= PD_RECORD_HEADER_SIZE ? load_u16(body.data + at + 6, swap) : 0;

    return size < BUILD_ID_SIZE_MIN || size > body.size - at || ALIGN8(size) > PD_RECORD_SIZE_MAX
               ? 0
               : size;
}

bool pd_pipe_takes_feature(const PdWriter *w, unsigned bit, Bytes body) {
    size_t at = 0;

    switch (bit) {
    case PD_FEATURE_TRACING_DATA:
        return body.size <= UINT32_MAX - 8;
    case PD_FEATURE_BUILD_ID:
        for (size_t n; (n = pipe_build_id_entry(body, at, w->options.swap)) > 0;)
            at += n;
        return at == body.size;
    case PD_FEATURE_AUXTRACE: /* an index of file offsets */
        return false;
    default:
        return body.size <= FEATURE_BODY_MAX &&
               (bit <= FEATURE_KNOWN_TO_ALL || w->options.newer_features);
    }
}

static void pipe_encode_tracing_data(Buffer *out, Bytes body, bool swap) {
    size_t start = pipe_begin_record(out, PD_RECORD_TRACING_DATA, swap);
    size_t padded = ALIGN8(body.size);

    buffer_u32(out, (uint32_t)padded, swap);
    buffer_zero(out, TRACING_HEADER_SIZE - PD_RECORD_HEADER_SIZE - 4);
    pipe_end_record(out, start, swap);
    buffer_append(out, body.data, body.size);
    buffer_zero(out, padded - body.size);
}

/* The entries are records except for the type, and perf 7 requires aligned sizes. */
static void pipe_encode_build_ids(Buffer *out, Bytes body, bool swap) {
    size_t at = 0;

    for (size_t n; (n = pipe_build_id_entry(body, at, swap)) > 0; at += n) {
        size_t start = out->size;

        buffer_append(out, body.data + at, n);
        buffer_zero(out, ALIGN8(n) - n);
        if (buffer_error(out) == 0)
            store_u32(out->data + start, PD_RECORD_BUILD_ID, swap);
        pipe_end_record(out, start, swap);
    }
}

int pd_pipe_feature(PdWriter *w, unsigned bit) {
    _cleanup_(buffer_done) Buffer out = {};
    const PdFeatureBody *f = &w->features[bit];
    Bytes body = {.data = f->data, .size = f->size};
    bool swap = w->options.swap;

    if (bit == PD_FEATURE_TRACING_DATA) {
        pipe_encode_tracing_data(&out, body, swap);
    } else if (bit == PD_FEATURE_BUILD_ID) {
        pipe_encode_build_ids(&out, body, swap);
    } else {
        size_t start = pipe_begin_record(&out, PD_RECORD_HEADER_FEATURE, swap);

        buffer_u64(&out, bit, swap);
        buffer_append(&out, body.data, body.size);
        pipe_end_record(&out, start, swap);
    }
    return pipe_put(w, &out);
}

int pd_pipe_begin(PdWriter *w) {
    _cleanup_(buffer_done) Buffer header = {};
    int r;

    buffer_u64(&header, PD_MAGIC_2, w->options.swap);
    buffer_u64(&header, PD_PIPE_HEADER_SIZE, w->options.swap);
    r = pipe_put(w, &header);
    for (size_t i = 0; r >= 0 && i < pd_events_count(w->events); i++)
        r = pd_pipe_event(w, pd_events_at(w->events, i));
    /* Tracing data and build ids need what the features contain, so they come after them. */
    for (unsigned bit = PD_FEATURE_HOSTNAME; r >= 0 && bit < PD_FEATURE_BITS; bit++)
        if (w->features[bit].set)
            r = pd_pipe_feature(w, bit);
    for (unsigned bit = PD_FEATURE_TRACING_DATA; r >= 0 && bit <= PD_FEATURE_BUILD_ID; bit++)
        if (w->features[bit].set)
            r = pd_pipe_feature(w, bit);
    if (r < 0)
        return r;
    w->streams[0].raw_bytes = 0;
    w->data_offset = pd_stream_end(&w->streams[0]);
    return 0;
}
