/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "perfdata/encode.h"
#include "perfdata/writer-internal.h"
#include "util/macro.h"

/*
 * The public face: keeps what the recording says about itself (events, features) until its place
 * has come, and sends records down one stream a file. What a layout makes of events and features is
 * in container.c (FILE, and `data` of a DIRECTORY) and pipe.c.
 */

enum { LEVEL_MAX = 22, FILES_MAX = 64, RUN_MAX = 64 * 1024 };

static int open_files(PdWriter *w, int folder) {
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
    w->compressed = options->zstd_level > 0;
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
    r = pd_writer_alloc(options, folder ? 1 + options->n_files : 1, &w);
    if (r >= 0 && w->compressed)
        r = pd_compressor_new(options->zstd_level, options->swap, &w->compressor);
    if (r >= 0 && options->tally)
        r = pd_tally_new(&w->tally);
    if (r >= 0 && folder)
        r = open_files(w, fd);
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

int pd_writer_keep_feature(PdWriter *w, unsigned bit, Bytes body) {
    PdFeatureBody *f = &w->features[bit];
    uint8_t *copy = malloc(body.size > 0 ? body.size : 1);

    if (!copy)
        return -ENOMEM;
    if (body.size > 0)
        memcpy(copy, body.data, body.size);
    free(f->data);
    *f = (PdFeatureBody){.set = true, .data = copy, .size = body.size};
    return 0;
}

int pd_writer_set_feature(PdWriter *w, unsigned bit, Bytes body) {
    bool pipe = w->options.layout == PD_LAYOUT_PIPE;
    int r;

    assert(!w->finished);
    if (bit == 0 || bit >= PD_FEATURE_BITS || bit == PD_FEATURE_COMPRESSED ||
        bit == PD_FEATURE_DIR_FORMAT)
        return -EINVAL;
    if (pipe && !pd_pipe_takes_feature(w, bit, body)) {
        w->features[bit].left_out = true;
        return PD_WRITER_LEFT_OUT;
    }
    r = pd_writer_keep_feature(w, bit, body);
    if (r < 0)
        return r;
    return pipe && w->begun ? pd_pipe_feature(w, bit) : 0;
}

int pd_writer_set_environment(PdWriter *w, const PdEnvironment *environment) {
    int left_out = 0;

    for (unsigned bit = 1; bit < PD_FEATURE_BITS; bit++) {
        _cleanup_(buffer_done) Buffer body = {};
        int r;

        if (bit == PD_FEATURE_COMPRESSED || bit == PD_FEATURE_DIR_FORMAT)
            continue;
        r = pd_environment_write(environment, bit, &body, w->options.swap);
        if (r == -ENOENT)
            continue;
        if (r >= 0)
            r = pd_writer_set_feature(w, bit, buffer_bytes(&body));
        if (r < 0)
            return r;
        left_out = MAX(left_out, r);
    }
    return left_out;
}

bool pd_writer_left_out(const PdWriter *w, unsigned bit) {
    return bit < PD_FEATURE_BITS && w->features[bit].left_out && !w->features[bit].set;
}

/* The features that only the writer knows. */
static int keep_own_features(PdWriter *w) {
    _cleanup_(buffer_done) Buffer body = {};
    uint64_t raw = pd_writer_raw_bytes(w), stored = pd_writer_stored_bytes(w);
    int r = 0;

    if (w->options.layout == PD_LAYOUT_DIRECTORY) {
        buffer_u64(&body, 1, w->options.swap);
        r = buffer_error(&body)
                ?: pd_writer_keep_feature(w, PD_FEATURE_DIR_FORMAT, buffer_bytes(&body));
    }
    if (r < 0 || !w->compressed)
        return r;
    buffer_clear(&body);
    pd_encode_compressed(&body, (uint32_t)w->options.zstd_level,
                         stored > 0 ? (uint32_t)MIN(raw / stored, (uint64_t)UINT32_MAX) : 0,
                         PD_FRAME_RAW_MAX, w->options.swap);
    return buffer_error(&body)
               ?: pd_writer_keep_feature(w, PD_FEATURE_COMPRESSED, buffer_bytes(&body));
}

int pd_writer_begin(PdWriter *w) {
    int r;

    assert(!w->begun);
    if (w->options.layout == PD_LAYOUT_PIPE) {
        r = keep_own_features(w);
        if (r < 0)
            return r;
        r = pd_pipe_begin(w);
    } else {
        r = pd_container_begin(w);
    }
    w->begun = r >= 0;
    return r;
}

/* Records that a reader must find in the file itself, or that it must not unpack twice. */
static bool stays_plain(uint32_t type) {
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

static bool all_whole(const uint8_t *p, size_t n, bool swap) {
    while (n > 0) {
        uint64_t size = n >= PD_RECORD_HEADER_SIZE ? pd_record_bytes(p, swap) : 0;

        if (size < PD_RECORD_HEADER_SIZE || size > n)
            return false;
        p += size;
        n -= size;
    }
    return true;
}

static int tally_records(PdWriter *w, uint32_t file, const uint8_t *p, size_t n) {
    for (size_t at = 0; at < n;) {
        PdRecord record = {.type = load_u32(p + at, w->options.swap),
                           .misc = load_u16(p + at + 4, w->options.swap),
                           .swap = w->options.swap,
                           .file = file,
                           .size = (uint32_t)pd_record_bytes(p + at, w->options.swap),
                           .data = p + at};
        int r = pd_tally_add(w->tally, w->events, &record);

        if (r < 0)
            return r;
        at += record.size;
    }
    return 0;
}

/* Splits into runs of records that go the same way, none much longer than RUN_MAX. */
static int put_records(PdWriter *w, PdStream *s, const uint8_t *p, size_t n) {
    size_t run = 0, at = 0;
    int r = 0;

    if (!s->compressor)
        return pd_stream_plain(s, p, n);
    while (at < n && r >= 0) {
        size_t size = pd_record_bytes(p + at, w->options.swap);
        bool plain = stays_plain(load_u32(p + at, w->options.swap));

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
    if (file >= w->n_streams || !all_whole(records, n, w->options.swap))
        return -EINVAL;
    s = &w->streams[file];
    r = pd_stream_make_room(s);
    if (r < 0)
        return r;
    if (w->tally)
        r = tally_records(w, file, records, n);
    if (r < 0)
        return r;
    w->last = file;
    return put_records(w, s, records, n);
}

int pd_writer_payload(PdWriter *w, const void *payload, size_t n) {
    PdStream *s = &w->streams[w->last];
    int r;

    assert(w->begun && !w->finished);
    r = pd_stream_make_room(s);
    return r < 0 ? r : pd_stream_plain(s, payload, n);
}

int pd_writer_flush(PdWriter *w) {
    int first = 0;

    for (unsigned i = 0; i < w->n_streams; i++) {
        int r = pd_stream_flush(&w->streams[i]);

        first = first < 0 ? first : r;
    }
    return first;
}

/* What the records told, where the caller did not say it himself. */
static int keep_tally(PdWriter *w) {
    _cleanup_(buffer_done) Buffer times = {}, build_ids = {};
    PdTallyTotals totals = pd_tally_totals(w->tally);
    int r = 0;

    if (totals.has_times && !w->features[PD_FEATURE_SAMPLE_TIME].set) {
        pd_encode_sample_time(&times, totals.first_sample_time, totals.last_sample_time,
                              w->options.swap);
        r = buffer_error(&times)
                ?: pd_writer_set_feature(w, PD_FEATURE_SAMPLE_TIME, buffer_bytes(&times));
    }
    if (r < 0 || totals.n_build_ids == 0 || w->features[PD_FEATURE_BUILD_ID].set)
        return r;
    pd_tally_encode_build_ids(w->tally, &build_ids, w->options.swap);
    return buffer_error(&build_ids)
               ?: pd_writer_set_feature(w, PD_FEATURE_BUILD_ID, buffer_bytes(&build_ids));
}

/* A data section without a byte would say that the file was never finished. */
static int fill_empty(PdWriter *w) {
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
        r = keep_tally(w);
        if (r < 0)
            return r;
    }
    r = pd_writer_flush(w);
    if (r >= 0)
        r = fill_empty(w);
    if (r >= 0)
        r = pd_writer_flush(w);
    if (r >= 0 && w->options.layout != PD_LAYOUT_PIPE) {
        r = keep_own_features(w);
        if (r >= 0)
            r = pd_container_finish(w);
    }
    w->finished = r >= 0;
    return r < 0 ? r : 0;
}

uint64_t pd_writer_offset(PdWriter *w) {
    return pd_stream_end(&w->streams[0]);
}

uint64_t pd_writer_raw_bytes(const PdWriter *w) {
    uint64_t n = 0;

    for (unsigned i = 0; i < w->n_streams; i++)
        n += w->streams[i].raw_bytes;
    return n;
}

uint64_t pd_writer_stored_bytes(const PdWriter *w) {
    uint64_t n = 0;

    for (unsigned i = 0; i < w->n_streams; i++)
        n += pd_stream_end(&w->streams[i]) - (i == 0 ? w->data_offset : 0);
    return n;
}
