/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "perfdata/writer/encode.h"
#include "perfdata/writer/writer-internal.h"
#include "util/file.h"
#include "util/macro.h"

/*
 * The frame of a perf.data file around its records: header, ids and attrs before, features after.
 * The front has the events that are known at the start, and a data size of 0, which marks the file
 * as unfinished. At the end the features are written after the data, and the header last, so that a
 * file is always either recoverable or complete. If events were added late, the attr section is
 * written again after the features.
 */

/* The position and size of a section. */
typedef struct Section {
    uint64_t offset, size;
} Section;

/* Appends the ids of all events, then their attrs, as written at offset `base` of the file. */
static Section container_encode_attrs(const PdWriter *w, uint32_t attr_size, uint64_t base,
                                      Buffer *out) {
    size_t start = out->size, n = pd_events_count(w->events);
    Section attrs, ids = {.offset = base};

    for (size_t i = 0; i < n; i++) {
        const PdEvent *event = pd_events_at(w->events, i);

        for (size_t k = 0; k < event->n_ids; k++)
            buffer_u64(out, event->ids[k], w->options.swap);
    }
    attrs.offset = base + (out->size - start);
    for (size_t i = 0; i < n; i++) {
        const PdEvent *event = pd_events_at(w->events, i);

        pd_encode_attr(out, event, attr_size, w->options.swap);
        ids.size = event->n_ids * sizeof(uint64_t);
        buffer_u64(out, ids.offset, w->options.swap);
        buffer_u64(out, ids.size, w->options.swap);
        ids.offset += ids.size;
    }
    attrs.size = base + (out->size - start) - attrs.offset;
    return attrs;
}

static void container_encode_header(const PdWriter *w, uint32_t attr_size, Section attrs,
                                    Section data, bool finished, Buffer *out) {
    bool swap = w->options.swap;
    uint64_t bits[PD_FEATURE_BITS / 64] = {};

    for (unsigned bit = 0; finished && bit < PD_FEATURE_BITS; bit++)
        if (w->features[bit].set)
            bits[bit / 64] |= 1ULL << bit % 64;
    buffer_u64(out, PD_MAGIC_2, swap);
    buffer_u64(out, PD_HEADER_SIZE, swap);
    buffer_u64(out, attr_size + 2 * sizeof(uint64_t), swap);
    buffer_u64(out, attrs.offset, swap);
    buffer_u64(out, attrs.size, swap);
    buffer_u64(out, data.offset, swap);
    buffer_u64(out, data.size, swap);
    buffer_zero(out, 2 * sizeof(uint64_t)); /* event_types, obsolete */
    for (unsigned i = 0; i < ARRAY_SIZE(bits); i++)
        buffer_u64(out, bits[i], swap);
}

int pd_container_begin(PdWriter *w) {
    _cleanup_(buffer_done) Buffer header = {}, front = {};
    PdStream *s = &w->streams[0];
    Section attrs;

    w->attr_size = pd_encode_attrs_size(w->events);
    attrs = container_encode_attrs(w, w->attr_size, PD_HEADER_SIZE, &front);
    w->attrs_offset = attrs.offset;
    w->data_offset = PD_HEADER_SIZE + front.size;
    container_encode_header(w, w->attr_size, attrs, (Section){.offset = w->data_offset}, false,
                            &header);
    buffer_append(&header, front.data, front.size);
    if (buffer_error(&front) < 0 || buffer_error(&header) < 0)
        return -ENOMEM;
    w->n_attrs_written = pd_events_count(w->events);
    s->position = w->data_offset;
    return file_write_all_at(s->fd, header.data, header.size, 0);
}

/* Appends the table of feature sections, then their bodies, as written at offset `base`. */
static void container_encode_features(const PdWriter *w, uint64_t base, Buffer *out) {
    uint64_t at = base;

    for (unsigned bit = 0; bit < PD_FEATURE_BITS; bit++)
        at += w->features[bit].set ? 2 * sizeof(uint64_t) : 0;
    for (unsigned bit = 0; bit < PD_FEATURE_BITS; bit++) {
        if (!w->features[bit].set)
            continue;
        buffer_u64(out, at, w->options.swap);
        buffer_u64(out, w->features[bit].size, w->options.swap);
        at += w->features[bit].size;
    }
    for (unsigned bit = 0; bit < PD_FEATURE_BITS; bit++)
        if (w->features[bit].set)
            buffer_append(out, w->features[bit].data, w->features[bit].size);
}

int pd_container_finish(PdWriter *w) {
    _cleanup_(buffer_done) Buffer header = {}, tail = {};
    PdStream *s = &w->streams[0];
    uint64_t end = pd_stream_end(s);
    uint32_t attr_size = w->attr_size;
    Section attrs = {.offset = w->attrs_offset,
                     .size = w->n_attrs_written * (attr_size + 2 * sizeof(uint64_t))};
    int r;

    container_encode_features(w, end, &tail);
    if (pd_events_count(w->events) > w->n_attrs_written) {
        buffer_zero(&tail, ALIGN8(end + tail.size) - (end + tail.size));
        attr_size = pd_encode_attrs_size(w->events);
        attrs = container_encode_attrs(w, attr_size, end + tail.size, &tail);
    }
    container_encode_header(w, attr_size, attrs,
                            (Section){.offset = w->data_offset, .size = end - w->data_offset}, true,
                            &header);
    if (buffer_error(&tail) < 0 || buffer_error(&header) < 0)
        return -ENOMEM;
    r = file_write_all_at(s->fd, tail.data, tail.size, end);
    if (r < 0)
        return r;
    if (ftruncate(s->fd, (off_t)(end + tail.size)) < 0)
        return -errno;
    return file_write_all_at(s->fd, header.data, header.size, 0);
}
