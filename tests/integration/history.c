/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "elf/note.h"
#include "perfdata/reader/reader.h"
#include "perfdata/writer/writer.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/parse.h"

/*
 * A recording of perf cut into pieces as a recorder would have written them. Its records are played
 * in sweeps: side-band up to a little beyond the start of the sweep (rings are drained one after
 * the other), then samples up to it, a few of either left in flight until the next one. What perf
 * told about running processes is installed as baselines. Each piece is to stand alone: a test
 * compares how the samples of all pieces resolve with how those of the whole do.
 *
 * Usage: history RECORDING PREFIX SWEEP-NS SWEEPS-A-PIECE SEED [build-ids]
 * Writes PREFIX0, PREFIX1, … With the last word what wants a build id gets it some sweeps later, so
 * that mappings of one file stand in a piece with it and without.
 */

enum { CPUS_MAX = 1024, AHEAD_PARTS = 4, IN_FLIGHT_ONE_IN = 200 };

typedef struct Kept {
    uint64_t time, order;
    uint32_t cpu, pid, tid;
    const PdEvent *event;
    size_t at; /* in bytes */
    bool done;
} Kept;

typedef struct Known {
    uint32_t pid, ppid;
    BaselineThread *threads;
    size_t n_threads;
    PdMmap *maps;
    size_t n_maps;
} Known;

typedef struct Play {
    PdReader *reader;
    Buffer bytes, kernel;
    Kept *side_band, *samples;
    size_t n_side_band, n_samples;
    size_t side_band_at, samples_at; /* all entries before this one are done */
    Known *known;
    size_t n_known, n_installed;
    uint64_t random;
    uint64_t first, last;
    bool build_ids;
    uint64_t n_build_ids;

    History *history;
    Emission *emission;
    PdWriter *writer;
    int fd;
    const char *prefix;
    unsigned n_pieces;
    uint64_t round_ns; /* the start of the sweep that the last round followed; 0: none */
    uint64_t written, feed_ns, need_ns;
} Play;

static uint64_t chance(Play *play, uint64_t n) {
    play->random = hash_u64(0x1234567, play->random + 1);
    return n ? play->random % n : 0;
}

static PdRecord record_of(const Play *play, const Kept *kept) {
    return pd_record_at(play->bytes.data + kept->at, false);
}

static int keep(Play *play, Kept **items, size_t *n, const PdRecord *record, const PdStamp *stamp) {
    Kept *kept = array_grow(items, n);

    if (!kept)
        return -ENOMEM;
    *kept = (Kept){.time = stamp->time,
                   .order = *n,
                   .cpu = stamp->has_cpu ? stamp->cpu % CPUS_MAX : 0,
                   .pid = stamp->pid,
                   .tid = stamp->tid,
                   .event = stamp->event,
                   .at = play->bytes.size};
    buffer_append(&play->bytes, record->data, record->size);
    if (play->first == 0 || stamp->time < play->first)
        play->first = stamp->time;
    if (stamp->time > play->last)
        play->last = stamp->time;
    return buffer_error(&play->bytes);
}

static Known *known(Play *play, uint32_t pid) {
    Known *k;

    /* perf writes one process after the other. */
    for (size_t i = play->n_known; i-- > 0;)
        if (play->known[i].pid == pid)
            return &play->known[i];
    k = array_grow(&play->known, &play->n_known);
    if (k)
        k->pid = pid;
    return k;
}

static Bytes copy_of(Bytes text) {
    uint8_t *copy = calloc(1, text.size + 1);

    if (copy && text.size > 0)
        memcpy(copy, text.data, text.size);
    return (Bytes){.data = copy, .size = copy ? text.size : 0};
}

/* Notes records that perf generated before it began, which have no time. */
static int note(Play *play, const PdRecord *record, const PdEvent *event) {
    PdBody body;
    Known *k = NULL;

    if (pd_record_parse(record, event, &body) < 0)
        return -EBADMSG;
    switch (record->type) {
    case PD_RECORD_MMAP:
    case PD_RECORD_KSYMBOL:
    case PD_RECORD_BPF_EVENT: {
        size_t at = play->kernel.size, size = record->size - event->trailer_size;

        buffer_append(&play->kernel, record->data, size);
        if (buffer_error(&play->kernel) == 0)
            store_u16(play->kernel.data + at + 6, (uint16_t)size, false);
        break;
    }
    case PD_RECORD_COMM: {
        BaselineThread *thread;

        k = known(play, body.comm.pid);
        thread = k ? array_grow(&k->threads, &k->n_threads) : NULL;
        if (thread)
            *thread = (BaselineThread){.tid = body.comm.tid,
                                       .comm = (const char *)copy_of(body.comm.comm).data};
        break;
    }
    case PD_RECORD_FORK:
        k = known(play, body.task.pid);
        if (k && body.task.tid == body.task.pid)
            k->ppid = body.task.ppid;
        break;
    case PD_RECORD_MMAP2: {
        PdMmap *map;

        k = known(play, body.mmap.pid);
        map = k ? array_grow(&k->maps, &k->n_maps) : NULL;
        if (map) {
            *map = body.mmap;
            map->filename = copy_of(body.mmap.filename);
        }
        break;
    }
    }
    return 0;
}

static int by_time(const void *a, const void *b) {
    const Kept *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static int load(Play *play, const char *path) {
    PdRecord record;
    PdStamp stamp;
    int r = pd_reader_open(path, NULL, &play->reader, NULL);

    while (r >= 0 && (r = pd_reader_next(play->reader, &record)) > 0) {
        r = pd_events_stamp(pd_reader_events(play->reader), &record, &stamp);
        if (r < 0 || record.type >= PD_RECORD_USER || !stamp.event || record.swap)
            continue;
        if (record.type == PD_RECORD_SAMPLE)
            r = keep(play, &play->samples, &play->n_samples, &record, &stamp);
        else if (stamp.time == 0)
            r = note(play, &record, stamp.event);
        else
            r = keep(play, &play->side_band, &play->n_side_band, &record, &stamp);
    }
    if (r == 0 && play->n_samples > 0 && play->n_side_band > 0) {
        qsort(play->samples, play->n_samples, sizeof(*play->samples), by_time);
        qsort(play->side_band, play->n_side_band, sizeof(*play->side_band), by_time);
    }
    return r;
}

static int begin(Play *play) {
    uint64_t time = play->first - 1;
    int r = history_settle(play->history, time);

    history_complete(play->history, time);
    history_complete(play->history, time);
    return r < 0 ? r : history_install_kernel(play->history, buffer_bytes(&play->kernel));
}

/* Installs the next few, or all that are left. */
static int install(Play *play, size_t n) {
    uint64_t time = play->first - 1;
    int r = 0;

    for (; n > 0 && play->n_installed < play->n_known && r == 0; n--) {
        const Known *k = &play->known[play->n_installed++];
        Baseline baseline = {.pid = k->pid,
                             .ppid = k->ppid,
                             .begin_ns = time,
                             .end_ns = time,
                             .threads = k->threads,
                             .n_threads = k->n_threads,
                             .maps = k->maps,
                             .n_maps = k->n_maps};

        if ((int32_t)k->pid > 0 && k->n_threads > 0)
            r = history_install(play->history, &baseline);
    }
    return r;
}

static int finish_piece(Play *play) {
    int r = play->writer ? pd_writer_finish(play->writer) : 0;

    play->writer = pd_writer_free(play->writer);
    closep(&play->fd);
    return r;
}

static int write_all(Play *play, Buffer *records) {
    int r = buffer_error(records);

    if (r == 0 && records->size > 0)
        r = pd_writer_write(play->writer, 0, records->data, records->size);
    buffer_clear(records);
    return r;
}

static int begin_piece(Play *play) {
    PdEvents *events = pd_reader_events(play->reader);
    const PdEvent *side_band = play->side_band[0].event;
    PdTrailer trailer = {.sample_type = side_band->attr.sample_type, .id = side_band->ids[0]};
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE, .tally = true};
    _cleanup_(emission_freep) Emission *emission = NULL;
    _cleanup_(buffer_done) Buffer preamble = {};
    char path[4096];
    int r;

    (void)snprintf(path, sizeof(path), "%s%u", play->prefix, play->n_pieces++);
    r = emission_new(play->history, &trailer, &emission);
    if (r == 0)
        r = finish_piece(play);
    if (r < 0)
        return r;
    play->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    r = play->fd < 0 ? -errno : pd_writer_new(play->fd, &options, &play->writer);
    for (size_t i = 0; i < pd_events_count(events) && r == 0; i++)
        r = pd_writer_add_event(play->writer, pd_events_at(events, i));
    if (r == 0)
        r = pd_writer_begin(play->writer);
    if (r == 0)
        r = emission_preamble(emission, &preamble);
    if (r == 0)
        pd_emit_mark(&preamble, PD_RECORD_FINISHED_INIT);
    if (r == 0)
        r = write_all(play, &preamble);
    emission_free(play->emission);
    play->emission = TAKE_PTR(emission);
    play->round_ns = 0;
    return r;
}

/* CPU by CPU, each up to a random moment after the start of the sweep. */
static int take_side_band(Play *play, uint64_t start, uint64_t sweep_ns, bool all) {
    size_t end = play->side_band_at;
    uint64_t ahead = sweep_ns / AHEAD_PARTS, began;
    uint64_t salt = chance(play, 1 << 30);
    int r = 0;

    while (end < play->n_side_band && play->side_band[end].time <= start + ahead)
        end++;
    began = clock_monotonic_ns();
    for (size_t i = play->side_band_at; i < end && r == 0; i++) {
        Kept *kept = &play->side_band[i];
        PdRecord record = record_of(play, kept);
        uint64_t until = start + hash_u64(salt, kept->cpu) % (ahead + 1);

        if (kept->done || (kept->time > until && !all))
            continue;
        kept->done = true;
        r = history_feed(play->history, &record, kept->event);
    }
    while (play->side_band_at < play->n_side_band && play->side_band[play->side_band_at].done)
        play->side_band_at++;
    if (r == 0)
        r = history_settle(play->history, start);
    play->feed_ns += clock_monotonic_ns() - began;
    return r;
}

static int take_sample(Play *play, Kept *kept, Buffer *out) {
    PdRecord record = record_of(play, kept);
    uint64_t began = clock_monotonic_ns();
    PdSample sample;
    int r = pd_sample_parse(&record, kept->event, &sample);

    kept->done = true;
    if (r == 0)
        r = emission_need(play->emission, kept->pid, kept->tid, kept->time, sample.cgroup);
    play->need_ns += clock_monotonic_ns() - began;
    buffer_append(out, record.data, record.size);
    play->written++;
    return r;
}

static int take_samples(Play *play, uint64_t start, bool all) {
    _cleanup_(buffer_done) Buffer out = {};
    size_t end = play->samples_at;
    int r = 0;

    while (end < play->n_samples && play->samples[end].time <= start)
        end++;
    for (uint32_t cpu = 0; cpu < CPUS_MAX && r == 0; cpu++) {
        bool any = false;

        for (size_t i = play->samples_at; i < end && r == 0; i++) {
            Kept *kept = &play->samples[i];

            if (kept->cpu != cpu || kept->done)
                continue;
            any = true;
            /* This sample was being written when the head was noted. */
            if (!all && i + CPUS_MAX / 256 > end && chance(play, 4) == 0)
                continue;
            r = take_sample(play, kept, &out);
        }
        if (r == 0 && any)
            r = write_all(play, emission_pending(play->emission));
        if (r == 0)
            r = write_all(play, &out);
    }
    while (play->samples_at < play->n_samples && play->samples[play->samples_at].done)
        play->samples_at++;
    return r;
}

static void answer(Play *play) {
    HistoryWanted wanted;

    while (chance(play, 4) != 0 && history_next_wanted(play->history, &wanted) > 0) {
        _cleanup_close_ int fd = open(wanted.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        BuildId id = {};

        if (wanted.checks) {
            history_set_checked(play->history, wanted.image,
                                chance(play, 8) ? HISTORY_SAME : HISTORY_UNPROVEN, 0, &wanted);
            continue;
        }
        if (fd < 0 || elf_build_id_of_fd(fd, &id) < 0)
            id.size = 0;
        history_set_build_id(play->history, wanted.image,
                             (Bytes){.data = id.bytes, .size = id.size}, 1);
        play->n_build_ids += id.size > 0;
    }
}

static int end_sweep(Play *play, uint64_t start) {
    _cleanup_(buffer_done) Buffer out = {};
    int r = write_all(play, emission_pending(play->emission));

    if (play->n_installed < play->n_known)
        return r;
    history_complete(play->history, start);
    if (play->round_ns != 0 && play->round_ns > history_floor(play->history))
        return r;
    play->round_ns = start;
    pd_emit_mark(&out, PD_RECORD_FINISHED_ROUND);
    return r < 0 ? r : write_all(play, &out);
}

static int play_all(Play *play, uint64_t sweep_ns, uint64_t sweeps_a_piece) {
    uint64_t start = play->first + sweep_ns / 2;
    bool last = false;
    size_t installed_a_sweep = play->n_known / (2 + chance(play, 30)) + 1;
    int r = begin(play);

    if (r == 0)
        r = begin_piece(play);
    while (r == 0 && !last) {
        last = start >= play->last;
        if (last)
            start = play->last;
        r = take_side_band(play, start, sweep_ns, last);
        if (r == 0)
            r = take_samples(play, start, last);
        if (r == 0)
            r = install(play, last ? SIZE_MAX : installed_a_sweep);
        if (r == 0 && play->build_ids)
            answer(play);
        if (r == 0)
            r = end_sweep(play, start);
        if (r == 0 && !last && play->n_installed == play->n_known &&
            chance(play, sweeps_a_piece) == 0)
            r = begin_piece(play);
        start += sweep_ns / 2 + chance(play, sweep_ns);
    }
    return r < 0 ? r : finish_piece(play);
}

static void play_done(Play *play) {
    emission_free(play->emission);
    history_free(play->history);
    pd_writer_free(play->writer);
    pd_reader_free(play->reader);
    closep(&play->fd);
    for (size_t i = 0; i < play->n_known; i++) {
        for (size_t k = 0; k < play->known[i].n_threads; k++)
            free((void *)play->known[i].threads[k].comm);
        for (size_t k = 0; k < play->known[i].n_maps; k++)
            free((void *)play->known[i].maps[k].filename.data);
        free(play->known[i].threads);
        free(play->known[i].maps);
    }
    free(play->known);
    free(play->side_band);
    free(play->samples);
    buffer_done(&play->bytes);
    buffer_done(&play->kernel);
}

int main(int argc, char **argv) {
    _cleanup_(play_done) Play play = {.fd = -1};
    uint64_t sweep_ns, sweeps, seed;
    HistoryCounts counts;
    int r = -EINVAL;

    if ((argc == 6 || (argc == 7 && strcmp(argv[6], "build-ids") == 0)) &&
        parse_u64(argv[3], &sweep_ns) == 0 && parse_u64(argv[4], &sweeps) == 0 &&
        parse_u64(argv[5], &seed) == 0 && sweep_ns >= 8) {
        play.prefix = argv[2];
        play.random = seed;
        play.build_ids = argc == 7;
        r = history_new(NULL, &play.history);
        if (r == 0)
            r = load(&play, argv[1]);
        if (r == 0)
            r = play.n_side_band > 0 ? play_all(&play, sweep_ns, sweeps) : -ENODATA;
    }
    if (r < 0) {
        fprintf(stderr, "history: %s\n", strerror(-r));
        return 1;
    }
    counts = history_counts(play.history);
    printf("{\"pieces\": %u, \"samples\": %" PRIu64 ", \"side_band\": %zu, \"feed_ns\": %" PRIu64
           ", \"need_ns\": %" PRIu64 ", \"processes\": %" PRIu64 ", \"memory\": %" PRIu64
           ", \"late\": %" PRIu64 ", \"dropped\": %" PRIu64 ", \"unknown\": %" PRIu64
           ", \"build_ids\": %" PRIu64 "}\n",
           play.n_pieces, play.written, play.n_side_band, play.feed_ns, play.need_ns,
           counts.processes, counts.memory_bytes, counts.late, counts.dropped, counts.unknown,
           play.n_build_ids);
    return 0;
}
