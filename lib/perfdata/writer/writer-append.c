/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "perfdata/writer/writer-internal.h"
#include "util/macro.h"

/*
 * The public functions: they keep what the recording says about itself (events, features) until it
 * can be written, and send records through one stream for each file. The features are in
 * writer-feature.c; the layouts are in container.c (FILE, and `data` of a DIRECTORY) and pipe.c.
 */

enum { LEVEL_MAX = 22, FILES_MAX = 64, RUN_MAX = 64 * 1024 };

static int writer_append_open_files(PdWriter *w, int folder) {
    for (unsigned i = 0; i < w->n_streams; i++) {
        char name[32] = "data";
        int fd;

        if (i > 0)
            snprintf(name, sizeof(name), "data.%u", i - 1);
        fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return -errno;
        w->streams[i].fd = fd;
        w->n_owned++;
    }
    return 0;
}

int pd_writer_alloc(const PdWriterOptions *options, unsigned n_streams, PdWriter **ret) {
    _cleanup_(pd_writer_freep) PdWriter *w = calloc(1, sizeof(*w));
    int r;

    if (!w)
        return -ENOMEM;
    w->options = *options;
    if (options->layout == PD_LAYOUT_PIPE && options->swap)
        w->options.zstd_level = 0;
    w->compressed = w->options.zstd_level > 0;
    r = pd_events_new(&w->events);
    if (r < 0)
        return r;
    w->n_streams = n_streams;
    w->streams = calloc(n_streams, sizeof(*w->streams));
    if (!w->streams)
        return -ENOMEM;
    for (unsigned i = 0; i < n_streams; i++)
        w->streams[i] = (PdStream){.fd = -1, .positioned = options->layout != PD_LAYOUT_PIPE};
    *ret = TAKE_PTR(w);
    return 0;
}

int pd_writer_new(int fd, const PdWriterOptions *options, PdWriter **ret) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    bool folder = options->layout == PD_LAYOUT_DIRECTORY;
    int r;

    if (options->zstd_level < 0 || options->zstd_level > LEVEL_MAX ||
        (folder && (options->n_files < 1 || options->n_files > FILES_MAX)))
        return -EINVAL;
    /* With O_APPEND even pwrite() appends. */
    if (options->layout == PD_LAYOUT_FILE && (fcntl(fd, F_GETFL) & O_APPEND))
        return -EINVAL;
    r = pd_writer_alloc(options, folder ? 1 + options->n_files : 1, &w);
    if (r >= 0 && w->compressed)
        r = pd_compressor_new(w->options.zstd_level, options->swap, &w->compressor);
    if (r >= 0 && options->tally)
        r = pd_tally_new(&w->tally);
    if (r >= 0 && folder)
        r = writer_append_open_files(w, fd);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < w->n_streams; i++)
        w->streams[i].compressor = w->compressor;
    if (!folder)
        w->streams[0].fd = fd;
    *ret = TAKE_PTR(w);
    return 0;
}

PdWriter *pd_writer_free(PdWriter *w) {
    if (!w)
        return NULL;
    for (unsigned i = 0; i < w->n_owned; i++)
        (void)close(w->streams[i].fd);
    for (unsigned i = 0; w->streams && i < w->n_streams; i++)
        pd_stream_done(&w->streams[i]);
    free(w->streams);
    pd_compressor_free(w->compressor);
    pd_events_free(w->events);
    pd_tally_free(w->tally);
    for (unsigned bit = 0; bit < PD_FEATURE_BITS; bit++)
        free(w->features[bit].data);
    free(w);
    return NULL;
}

int pd_writer_add_event(PdWriter *w, const PdEvent *event) {
    Bytes raw = {.data = event->raw, .size = event->raw ? event->raw_size : 0};
    PdEvent *mine;
    int r;

    assert(!w->finished);
    r = pd_events_add(w->events, &event->attr, raw, event->ids, event->n_ids, &mine);
    if (r < 0)
        return r;
    if (event->name_given)
        r = pd_events_set_name(
            w->events, mine,
            (Bytes){.data = (const uint8_t *)event->name, .size = strlen(event->name)});
    if (r >= 0 && event->unit)
        r = pd_events_set_unit(
            w->events, mine,
            (Bytes){.data = (const uint8_t *)event->unit, .size = strlen(event->unit)});
    if (r < 0)
        return r;
    mine->scale = event->scale;
    return w->begun && w->options.layout == PD_LAYOUT_PIPE ? pd_pipe_event(w, mine) : 0;
}

int pd_writer_begin(PdWriter *w) {
    int r;

    assert(!w->begun);
    if (w->options.layout == PD_LAYOUT_PIPE) {
        r = pd_writer_keep_own_features(w);
        if (r < 0)
            return r;
        r = pd_pipe_begin(w);
    } else {
        r = pd_container_begin(w);
    }
    w->begun = r >= 0;
    return r;
}

/* Whether a record must not be compressed: readers look for it in the file itself, or must not
 * decompress it twice. */
static bool writer_append_stays_plain(uint32_t type) {
    switch (type) {
    case PD_RECORD_HEADER_ATTR:
    case PD_RECORD_EVENT_TYPE:
    case PD_RECORD_TRACING_DATA:
    case PD_RECORD_BUILD_ID:
    case PD_RECORD_AUXTRACE:
    case PD_RECORD_EVENT_UPDATE:
    case PD_RECORD_HEADER_FEATURE:
    case PD_RECORD_COMPRESSED:
    case PD_RECORD_COMPRESSED2:
        return true;
    default:
        return type >= PD_RECORD_SIMPLEPERF;
    }
}

static bool writer_append_all_whole(const uint8_t *p, size_t n, bool swap) {
    while (n > 0) {
        uint64_t size = n >= PD_RECORD_HEADER_SIZE ? pd_record_at(p, swap).size : 0;

        if (size < PD_RECORD_HEADER_SIZE || size > n)
            return false;
        p += size;
        n -= size;
    }
    return true;
}

static int writer_append_tally_records(PdWriter *w, const uint8_t *p, size_t n) {
    for (size_t at = 0; at < n;) {
        PdRecord record = pd_record_at(p + at, w->options.swap);
        int r = pd_tally_add(w->tally, w->events, &record);

        if (r < 0)
            return r;
        at += record.size;
    }
    return 0;
}

/* Splits the records into runs that are either compressed or plain, none much longer than
 * RUN_MAX. */
static int writer_append_put_records(PdWriter *w, PdStream *s, const uint8_t *p, size_t n) {
    size_t run = 0, at = 0;
    int r = 0;

    if (!s->compressor)
        return pd_stream_plain(s, p, n);
    while (at < n && r >= 0) {
        PdRecord record = pd_record_at(p + at, w->options.swap);
        size_t size = record.size;
        bool plain = writer_append_stays_plain(record.type);

        if (at > run && (plain || at - run >= RUN_MAX)) {
            r = pd_stream_records(s, p + run, at - run);
            run = at;
        }
        if (r >= 0 && plain) {
            r = pd_stream_plain(s, p + at, size);
            run = at + size;
        }
        at += size;
    }
    return r >= 0 && at > run ? pd_stream_records(s, p + run, at - run) : r;
}

int pd_writer_write(PdWriter *w, uint32_t file, const void *records, size_t n) {
    PdStream *s;
    int r;

    assert(w->begun && !w->finished);
    if (file >= w->n_streams || !writer_append_all_whole(records, n, w->options.swap))
        return -EINVAL;
    s = &w->streams[file];
    r = pd_stream_make_room(s);
    if (r < 0)
        return r;
    if (w->tally)
        r = writer_append_tally_records(w, records, n);
    if (r < 0)
        return r;
    w->last = file;
    return writer_append_put_records(w, s, records, n);
}

int pd_writer_write_samples(PdWriter *w, uint32_t file, const void *records, size_t n,
                            const PdSpan *span) {
    PdStream *s;
    int r;

    assert(w->begun && !w->finished);
    if (file >= w->n_streams)
        return -EINVAL;
    s = &w->streams[file];
    r = pd_stream_make_room(s);
    if (r == 0)
        r = s->compressor ? pd_stream_records(s, records, n) : pd_stream_plain(s, records, n);
    if (r < 0)
        return r;
    if (w->tally)
        pd_tally_add_samples(w->tally, span->samples, span->first_ns, span->last_ns);
    w->last = file;
    return 0;
}

int pd_writer_write_packed(PdWriter *w, uint32_t file, Bytes packed, uint64_t raw,
                           const PdSpan *span) {
    PdStream *s;
    int r;

    assert(w->begun && !w->finished);
    if (file >= w->n_streams || !w->streams[file].compressor)
        return -EINVAL;
    s = &w->streams[file];
    r = pd_stream_make_room(s);
    if (r == 0)
        r = pd_stream_plain(s, packed.data, packed.size);
    if (r < 0)
        return r;
    s->raw_bytes += raw - packed.size;
    if (w->tally)
        pd_tally_add_samples(w->tally, span->samples, span->first_ns, span->last_ns);
    w->last = file;
    return 0;
}

int pd_writer_payload(PdWriter *w, const void *payload, size_t n) {
    PdStream *s = &w->streams[w->last];
    int r;

    assert(w->begun && !w->finished);
    r = pd_stream_make_room(s);
    return r < 0 ? r : pd_stream_plain(s, payload, n);
}

int pd_writer_end_frame(PdWriter *w, uint32_t file) {
    assert(w->begun && !w->finished);
    return file >= w->n_streams ? -EINVAL : pd_stream_end_frame(&w->streams[file]);
}

int pd_writer_flush(PdWriter *w) {
    int first = 0;

    for (unsigned i = 0; i < w->n_streams; i++) {
        int r = pd_stream_flush(&w->streams[i]);

        first = first < 0 ? first : r;
    }
    return first;
}

/* An empty data section would mark the file as unfinished. */
static int writer_append_fill_empty(PdWriter *w) {
    _cleanup_(buffer_done) Buffer mark = {};

    if (w->options.layout == PD_LAYOUT_PIPE || pd_stream_end(&w->streams[0]) > w->data_offset)
        return 0;
    buffer_u32(&mark, PD_RECORD_FINISHED_INIT, w->options.swap);
    buffer_u16(&mark, 0, w->options.swap);
    buffer_u16(&mark, PD_RECORD_HEADER_SIZE, w->options.swap);
    return buffer_error(&mark) ?: pd_stream_plain(&w->streams[0], mark.data, mark.size);
}

int pd_writer_finish(PdWriter *w) {
    int r;

    assert(w->begun && !w->finished);
    if (w->tally) {
        r = pd_writer_keep_tally(w);
        if (r < 0)
            return r;
    }
    r = pd_writer_flush(w);
    if (r >= 0)
        r = writer_append_fill_empty(w);
    if (r >= 0)
        r = pd_writer_flush(w);
    if (r >= 0 && w->options.layout != PD_LAYOUT_PIPE) {
        r = pd_writer_keep_own_features(w);
        if (r >= 0)
            r = pd_container_finish(w);
    }
    w->finished = r >= 0;
    return r < 0 ? r : 0;
}

uint64_t pd_writer_offset(PdWriter *w) {
    return pd_stream_end(&w->streams[0]);
}

uint64_t pd_writer_file_offset(PdWriter *w, uint32_t file) {
    assert(file < w->n_streams);
    return pd_stream_end(&w->streams[file]);
}
