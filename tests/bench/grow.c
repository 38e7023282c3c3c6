/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "perfdata/feature/environment.h"
#include "perfdata/reader/reader.h"
#include "perfdata/writer/emit.h"
#include "perfdata/writer/writer.h"
#include "util/log.h"
#include "util/macro.h"
#include "util/parse.h"

/*
 * Makes a large recording out of a small real one, for the bench: everything but samples once,
 * then the samples again and again, each pass later by the length of the recording, a
 * FINISHED_ROUND between passes, until the file has the size asked for.
 *
 * Usage: grow IN OUT BYTES
 */

typedef struct Grow {
    PdReader *reader;
    PdWriter *writer;
    Buffer samples;
    uint64_t first_ns, last_ns;
    uint64_t written;
} Grow;

/* Samples are kept, the rest is written where it stands. */
static int take(Grow *grow, const PdRecord *record) {
    PdStamp stamp;
    int r;

    if (record->type == PD_RECORD_FINISHED_ROUND)
        return 0;
    if (record->type != PD_RECORD_SAMPLE)
        return pd_writer_write(grow->writer, 0, record->data, record->size);
    r = pd_events_stamp(pd_reader_events(grow->reader), record, &stamp);
    if (r < 0 || !stamp.event || !stamp.has_time)
        return r < 0 ? r : -EBADMSG;
    if (grow->samples.size == 0 || stamp.time < grow->first_ns)
        grow->first_ns = stamp.time;
    grow->last_ns = MAX(grow->last_ns, stamp.time);
    buffer_append(&grow->samples, record->data, record->size);
    return buffer_error(&grow->samples);
}

/* All samples once more, moved on by the span of one pass. */
static int write_pass(Grow *grow, uint64_t shift_ns) {
    _cleanup_(buffer_done) Buffer mark = {};
    int r;

    for (size_t at = 0; at < grow->samples.size;) {
        uint8_t *p = grow->samples.data + at;
        PdRecord record = {.type = PD_RECORD_SAMPLE, .size = load_u16(p + 6, false), .data = p};
        PdStamp stamp;

        r = pd_events_stamp(pd_reader_events(grow->reader), &record, &stamp);
        if (r < 0)
            return r;
        store_u64(p + PD_RECORD_HEADER_SIZE + stamp.event->in_sample.time, stamp.time + shift_ns,
                  false);
        at += record.size;
    }
    r = pd_writer_write(grow->writer, 0, grow->samples.data, grow->samples.size);
    pd_emit_mark(&mark, PD_RECORD_FINISHED_ROUND);
    if (r == 0)
        r = pd_writer_write(grow->writer, 0, mark.data, mark.size);
    grow->written += grow->samples.size;
    return r;
}

static int copy_header(Grow *grow, PdEnvironment *environment) {
    PdEvents *events = pd_reader_events(grow->reader);
    unsigned damaged;
    PdDamage why;
    int r = pd_environment_from_reader(environment, grow->reader, &damaged, &why);

    environment->has[PD_FEATURE_SAMPLE_TIME] = false;
    for (size_t i = 0; r == 0 && i < pd_events_count(events); i++)
        r = pd_writer_add_event(grow->writer, pd_events_at(events, i));
    if (r == 0)
        r = pd_writer_set_environment(grow->writer, environment);
    return r < 0 ? r : pd_writer_begin(grow->writer);
}

static int grow_to(Grow *grow, uint64_t bytes) {
    _cleanup_(pd_environment_freep) PdEnvironment *environment = NULL;
    PdRecord record;
    int r = pd_environment_new(&environment);

    if (r == 0)
        r = copy_header(grow, environment);
    if (r < 0)
        return r;
    while ((r = pd_reader_next(grow->reader, &record)) > 0) {
        r = take(grow, &record);
        if (r < 0)
            return r;
    }
    if (r == 0 && grow->samples.size == 0)
        return -ENODATA;
    for (uint64_t shift_ns = 0; r == 0 && grow->written < bytes;
         shift_ns = grow->last_ns - grow->first_ns + 1)
        r = write_pass(grow, shift_ns);
    return r < 0 ? r : pd_writer_finish(grow->writer);
}

int main(int argc, char **argv) {
    Grow grow = {};
    uint64_t bytes;
    PdDamage why;
    int fd, r;

    if (argc != 4 || parse_size(argv[3], &bytes) < 0) {
        fprintf(stderr, "Usage: grow IN OUT BYTES\n");
        return 2;
    }
    fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    r = fd < 0 ? -errno : pd_reader_open(argv[1], NULL, &grow.reader, &why);
    if (r == 0)
        r = pd_writer_new(fd, &(PdWriterOptions){.layout = PD_LAYOUT_FILE}, &grow.writer);
    if (r == 0)
        r = grow_to(&grow, bytes);
    pd_writer_free(grow.writer);
    pd_reader_free(grow.reader);
    buffer_done(&grow.samples);
    closep(&fd);
    return r < 0 ? (log_error(r, "Failed to grow '%s' into '%s': %m", argv[1], argv[2]), 1) : 0;
}
