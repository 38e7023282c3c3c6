/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata/writer/emit.h"

/*
 * Chooses the file of a folder for each record. perf processes a record without a time when it
 * reads it, and sorts the others by time, equal ones in reading order. So all records with a time
 * go to data.0, where they keep their order, and the others, which are processed first, to `data`.
 * A recording in which some event has no time is not sorted at all, and stays complete in `data`.
 *
 * Records go to the writer one by one; it gathers them itself.
 */

enum {
    ROUND_BYTES = 4 * 1024 * 1024, /* perf has to hold and sort two of these at once */
    PAYLOAD_CHUNK = 256 * 1024,
};

int option_compress(const Option *option, const char *argument, void *field) {
    int *level = field;
    char *end;
    long n;

    if (strcmp(argument, "none") == 0) {
        *level = 0;
        return 0;
    }
    if (strncmp(argument, "zstd", 4) != 0)
        return -EINVAL;
    if (argument[4] == '\0') {
        *level = 3;
        return 0;
    }
    n = argument[4] == ':' && argument[5] >= '0' && argument[5] <= '9'
            ? strtol(argument + 5, &end, 10)
            : 0;
    if (n < 1 || n > 22 || *end != '\0')
        return -EINVAL;
    *level = (int)n;
    return 0;
}

PdLayout layout_chosen(unsigned word, const char *path) {
    static const PdLayout layouts[] = {PD_LAYOUT_FILE, PD_LAYOUT_DIRECTORY, PD_LAYOUT_PIPE};

    if (word > 0)
        return layouts[word - 1];
    return strcmp(path, "-") == 0 ? PD_LAYOUT_PIPE : PD_LAYOUT_FILE;
}

int sink_open(Sink *sink, int fd, const PdWriterOptions *options) {
    *sink = (Sink){.options = *options};
    return pd_writer_new(fd, options, &sink->writer);
}

void sink_done(Sink *sink) {
    sink->writer = pd_writer_free(sink->writer);
    buffer_done(&sink->auxtrace_index);
    buffer_done(&sink->payload);
}

int sink_add_events(Sink *sink, const PdEvents *events) {
    while (sink->n_events < pd_events_count(events)) {
        PdEvent event = *pd_events_at(events, sink->n_events);
        int r;

        /* These come as records. */
        event.unit = NULL;
        event.scale = 1;
        r = pd_writer_add_event(sink->writer, &event);
        if (r < 0)
            return r;
        sink->n_events++;
    }
    return 0;
}

/* COMPRESSED and DIR_FORMAT belong to the writer, AUXTRACE contains offsets of records. */
static bool sink_is_of_the_container(unsigned bit) {
    return bit == PD_FEATURE_COMPRESSED || bit == PD_FEATURE_DIR_FORMAT ||
           bit == PD_FEATURE_AUXTRACE;
}

int sink_read_feature(PdReader *reader, PdEnvironment *env, unsigned bit, Bytes *ret) {
    /* Tracing data and build ids of a stream are available without being a feature of it. */
    int r = pd_reader_feature(reader, bit, ret);

    return r < 0 ? r : pd_environment_read(env, bit, *ret, pd_reader_header(reader)->swap);
}

int sink_carry_features(Sink *sink, PdReader *reader, const bool *skip, PdDamage *why) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    int r = pd_environment_new(&env);

    for (unsigned bit = 1; bit < PD_FEATURE_BITS && r >= 0; bit++) {
        Bytes body;

        if (sink_is_of_the_container(bit) || skip[bit])
            continue;
        r = sink_read_feature(reader, env, bit, &body);
        if (r == -EBADMSG && why->text[0] == '\0')
            pd_feature_damage(reader, bit, r, why);
        if (r == -EBADMSG || r == -ENOENT) {
            r = 0;
            continue;
        }
        if (r >= 0)
            r = pd_writer_set_feature(sink->writer, bit, body);
    }
    return MIN(r, 0);
}

static bool sink_all_have_time(const PdEvents *events) {
    for (size_t i = 0; i < pd_events_count(events); i++) {
        const PdAttr *attr = &pd_events_at(events, i)->attr;

        if (!(attr->sample_type & PD_SAMPLE_TIME) || !(attr->flags & PD_ATTR_SAMPLE_ID_ALL))
            return false;
    }
    return true;
}

int sink_begin(Sink *sink, const PdEvents *events, bool makes_rounds) {
    sink->split = sink->options.layout == PD_LAYOUT_DIRECTORY && sink_all_have_time(events);
    sink->makes_rounds = makes_rounds;
    return pd_writer_begin(sink->writer);
}

static int sink_write_round(Sink *sink) {
    _cleanup_(buffer_done) Buffer mark = {};

    sink->round_bytes = 0;
    pd_emit_mark(&mark, PD_RECORD_FINISHED_ROUND);
    if (buffer_error(&mark) < 0)
        return buffer_error(&mark);
    if (sink->options.swap) {
        store_u32(mark.data, PD_RECORD_FINISHED_ROUND, true);
        store_u16(mark.data + 6, PD_RECORD_HEADER_SIZE, true);
    }
    return pd_writer_write(sink->writer, 0, mark.data, mark.size);
}

static int sink_copy_payload(Sink *sink, PdReader *reader, uint64_t size) {
    uint8_t *chunk;

    buffer_clear(&sink->payload);
    chunk = buffer_reserve(&sink->payload, PAYLOAD_CHUNK);
    if (!chunk)
        return -ENOMEM;
    for (;;) {
        ssize_t n = pd_reader_payload(reader, chunk, PAYLOAD_CHUNK);
        int r;

        sink->ends_early = n == 0 && size > 0;
        if (n <= 0)
            return (int)n;
        r = pd_writer_payload(sink->writer, chunk, (size_t)n);
        if (r < 0)
            return r;
        size -= MIN((uint64_t)n, size);
    }
}

/* Its offset is known only when everything before it has been written. */
static int sink_index_auxtrace(Sink *sink, const PdRecord *record) {
    int r = pd_writer_flush(sink->writer);

    if (r < 0)
        return r;
    buffer_u64(&sink->auxtrace_index, pd_writer_offset(sink->writer), sink->options.swap);
    buffer_u64(&sink->auxtrace_index, record->size, sink->options.swap);
    sink->n_auxtrace++;
    return buffer_error(&sink->auxtrace_index);
}

int sink_write(Sink *sink, PdReader *reader, const PdRecord *record, uint64_t time) {
    bool timed = sink->split && record->type < PD_RECORD_USER && time != 0;
    int r = 0;

    /* Behind a payload that is shorter than announced, a record would be read as a part of it. */
    if (sink->ends_early || !pd_record_payload_is_whole(record))
        return 0;
    if (record->type == PD_RECORD_FINISHED_ROUND &&
        (sink->makes_rounds || sink->options.layout == PD_LAYOUT_DIRECTORY))
        return 0;
    if (record->type == PD_RECORD_AUXTRACE && sink->options.layout != PD_LAYOUT_PIPE)
        r = sink_index_auxtrace(sink, record);
    if (r == 0)
        r = pd_writer_write(sink->writer, timed ? 1 : 0, record->data, record->size);
    if (r == 0 && record->payload > 0)
        r = sink_copy_payload(sink, reader, record->payload);
    if (r < 0 || !sink->makes_rounds || sink->options.layout == PD_LAYOUT_DIRECTORY)
        return r;
    sink->round_bytes += record->size;
    return sink->round_bytes >= ROUND_BYTES ? sink_write_round(sink) : 0;
}

static int sink_set_auxtrace(Sink *sink) {
    _cleanup_(buffer_done) Buffer body = {};

    buffer_u64(&body, sink->n_auxtrace, sink->options.swap);
    buffer_append(&body, sink->auxtrace_index.data, sink->auxtrace_index.size);
    if (buffer_error(&body) < 0)
        return buffer_error(&body);
    return pd_writer_set_feature(sink->writer, PD_FEATURE_AUXTRACE, buffer_bytes(&body));
}

int sink_finish(Sink *sink) {
    int r = sink->n_auxtrace > 0 ? sink_set_auxtrace(sink) : 0;

    return r < 0 ? r : pd_writer_finish(sink->writer);
}
