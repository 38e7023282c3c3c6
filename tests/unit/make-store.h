/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A store in a folder of its own, and records to put into it. */

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <time.h>

#include "perfdata/reader/reader.h"
#include "perfdata/writer/emit.h"
#include "store/folder/store-private.h"
#include "store/writer/store-session.h"
#include "test.h"

enum { STORE_SAMPLE_SIZE = 56, STORE_IDS = 4 };

#define MIB (1024ULL * 1024)

static const uint64_t store_ids[STORE_IDS] = {101, 102, 103, 104};

typedef struct Place {
    char folder[64];
    char path[80]; /* of the store */
    PdEnvironment *environment;
    PdEvents *events;
    Config *config;
    Store *store;
} Place;

/* A session is written in one of these ways. */
typedef struct Way {
    Layout layout;
    int level;
} Way;

static const Way ways[] = {
    {LAYOUT_FILE, 3}, {LAYOUT_FILE, 0}, {LAYOUT_DIRECTORY, 3}, {LAYOUT_DIRECTORY, 0}};

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    return remove(path);
}

static inline void place_done(Place *place) {
    store_free(place->store);
    config_free(place->config);
    pd_events_free(place->events);
    pd_environment_free(place->environment);
    if (place->folder[0])
        (void)nftw(place->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* IDENTIFIER, IP, TID, TIME, CPU. */
static inline PdAttr store_attr(void) {
    return (PdAttr){.type = PD_TYPE_SOFTWARE,
                    .sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_IP | PD_SAMPLE_TID |
                                   PD_SAMPLE_TIME | PD_SAMPLE_CPU,
                    .sample_period = 1000,
                    .flags = PD_ATTR_SAMPLE_ID_ALL | PD_ATTR_FREQ | PD_ATTR_USE_CLOCKID,
                    .clockid = CLOCK_MONOTONIC};
}

static inline int place_init(Place *place) {
    PdAttr attr = store_attr();
    PdEvent *event;
    int r;

    *place = (Place){};
    /* Uses a folder in memory if possible, because every segment is synced. */
    snprintf(place->folder, sizeof(place->folder), "%s/profd-store.XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(place->folder))
        return -errno;
    snprintf(place->path, sizeof(place->path), "%s/store", place->folder);
    r = pd_environment_new(&place->environment);
    if (r < 0)
        return r;
    place->environment->hostname = strdup("testhost");
    place->environment->version = strdup("profd test");
    place->environment->has[PD_FEATURE_HOSTNAME] = true;
    place->environment->has[PD_FEATURE_VERSION] = true;
    place->environment->nrcpus_available = place->environment->nrcpus_online = STORE_IDS;
    place->environment->has[PD_FEATURE_NRCPUS] = true;
    place->environment->clockid_resolution_ns = 1;
    place->environment->has[PD_FEATURE_CLOCKID] = true;
    r = pd_events_new(&place->events);
    if (r == 0)
        r = pd_events_add(place->events, &attr, (Bytes){}, store_ids, STORE_IDS, &event);
    if (r == 0)
        r = pd_events_set_name(place->events, event,
                               (Bytes){.data = (const uint8_t *)"cpu-clock", .size = 9});
    return r == 0 ? config_new(&place->config) : r;
}

#define PLACE(place)                                                                               \
    _cleanup_(place_done) Place place;                                                             \
    CHECK_OK(place_init(&place))

static inline int place_open(Place *place) {
    return store_open(&(StoreOptions){.path = place->path,
                                      .environment = place->environment,
                                      .config = place->config},
                      &place->store);
}

static inline int place_again(Place *place) {
    place->store = store_free(place->store);
    return place_open(place);
}

static inline SessionConfig store_session(const char *name, Layout layout, int level) {
    SessionConfig config;

    config_session_defaults(&config, name);
    config.layout = layout;
    config.zstd_level = level;
    return config;
}

static inline PdTrailer store_trailer(uint64_t time) {
    return (PdTrailer){.sample_type = store_attr().sample_type,
                       .id = store_ids[0],
                       .pid = 7,
                       .tid = 7,
                       .time = time};
}

/* The process of all samples. */
static inline void put_process(Buffer *b, uint64_t time) {
    PdTrailer trailer = store_trailer(time);
    const PdComm comm = {
        .pid = 7, .tid = 7, .comm = {.data = (const uint8_t *)"worker", .size = 6}};
    const PdMmap mmap = {.pid = 7,
                         .tid = 7,
                         .start = 0x400000,
                         .length = 0x100000,
                         .prot = 5,
                         .flags = 2,
                         .major = 8,
                         .minor = 1,
                         .inode = 77,
                         .filename = {.data = (const uint8_t *)"/usr/bin/worker", .size = 15}};

    pd_emit_comm(b, &trailer, &comm);
    pd_emit_mmap2(b, &trailer, PD_MISC_USER, &mmap);
}

/* Without this perf warns that kernel maps are restricted. */
static inline void put_kernel(Buffer *b, uint64_t time) {
    PdTrailer trailer = store_trailer(time);
    const PdMmap mmap = {
        .pid = UINT32_MAX,
        .start = 0xffffffff81000000,
        .length = 0x1000000,
        .pgoff = 0xffffffff81000000,
        .filename = {.data = (const uint8_t *)"[kernel.kallsyms]_text", .size = 22}};

    pd_emit_mmap(b, &trailer, PD_MISC_KERNEL, &mmap);
}

static inline void put_store_sample(Buffer *b, unsigned cpu, uint64_t time) {
    buffer_u32(b, PD_RECORD_SAMPLE, false);
    buffer_u16(b, PD_MISC_USER, false);
    buffer_u16(b, STORE_SAMPLE_SIZE - 8, false);
    buffer_u64(b, store_ids[cpu % STORE_IDS], false);
    buffer_u64(b, 0x401000 + time * 2654435761U % 0x80000, false);
    buffer_u32(b, 7, false);
    buffer_u32(b, 7, false);
    buffer_u64(b, time, false);
    buffer_u32(b, cpu, false);
    buffer_u32(b, 0, false);
}

static inline int begin_segment(Place *place, StoreSession *session) {
    SegmentHead head = {.events = place->events, .clock = clock_anchor_now()};
    const PdCoverage coverage = {.from_ns = head.clock.monotonic_ns, .cpus = {3}};
    int r;

    head.coverage = &coverage;

    put_kernel(&head.preamble, head.clock.monotonic_ns);
    put_process(&head.preamble, head.clock.monotonic_ns);
    pd_emit_mark(&head.preamble, PD_RECORD_FINISHED_INIT);
    r = store_session_begin(session, &head);
    buffer_done(&head.preamble);
    return r;
}

/* Side-band first, then n samples of a CPU, a microsecond apart from `time` on. */
static inline int write_samples(StoreSession *session, unsigned cpu, uint64_t time, unsigned n) {
    StoreBatch batch = {.kind = STORE_SAMPLES,
                        .cpu = cpu,
                        .first_ns = time,
                        .last_ns = time + (n - 1) * 1000ULL,
                        .samples = n};
    int r;

    for (unsigned i = 0; i < n; i++)
        put_store_sample(&batch.records, cpu, time + i * 1000ULL);
    r = store_session_write(session, &batch);
    buffer_done(&batch.records);
    return r;
}

static inline int write_side_band(StoreSession *session, uint64_t time) {
    StoreBatch batch = {.kind = STORE_SIDE_BAND};
    int r;

    put_process(&batch.records, time);
    r = store_session_write(session, &batch);
    buffer_done(&batch.records);
    return r;
}

static inline int end_sweep(StoreSession *session, uint64_t sweep) {
    ClockAnchor clock = clock_anchor_now();

    /* Samples are written a moment before their time. */
    store_session_cover(session, clock.monotonic_ns + 10000000);
    return store_session_end_sweep(session, sweep, true, &clock);
}

/* Waits until the writer has written a sweep; false: not within ten seconds. */
static inline bool wait_written(StoreSession *session, uint64_t sweep) {
    for (unsigned i = 0; i < 10000; i++) {
        if (store_session_written(session) >= sweep)
            return true;
        usleep(1000);
    }
    return false;
}

/* Runs a session for a moment, so that its writer finishes what was left open. */
static inline int recover_all(Place *place, const char *name) {
    SessionConfig config = store_session(name, LAYOUT_FILE, 3);
    StoreSession *session;
    int r = store_session_new(place->store, &config, false, &session);

    if (r < 0)
        return r;
    (void)store_session_previous(session, 0);
    store_session_close(session);
    return 0;
}

static inline int shell(const char *format, ...) _printf_(1, 2);
static inline int shell(const char *format, ...) {
    char command[1024];
    va_list ap;

    va_start(ap, format);
    vsnprintf(command, sizeof(command), format, ap);
    va_end(ap);
    return system(command);
}

static inline int dots_filter(const struct dirent *e) {
    return e->d_name[0] != '.';
}

/* Counts names in a session's folder with this suffix, and returns the last of them. */
static inline unsigned count_names(const Place *place, const char *session, const char *suffix,
                                   char ret_last[256]) {
    struct dirent **names;
    char path[160];
    unsigned found = 0;
    int n;

    snprintf(path, sizeof(path), "%s/sessions/%s", place->path, session);
    n = scandir(path, &names, dots_filter, alphasort);
    for (int i = 0; i < n; i++) {
        size_t length = strlen(names[i]->d_name), k = strlen(suffix);

        if (length >= k && strcmp(names[i]->d_name + length - k, suffix) == 0) {
            found++;
            if (ret_last)
                snprintf(ret_last, 256, "%s", names[i]->d_name);
        }
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return found;
}

/* The manifest of the last segment of `default` with this suffix. */
static inline int last_manifest(const Place *place, const char *suffix, SegmentName *ret_name,
                                Manifest **ret) {
    char last[256], path[160];
    _cleanup_close_ int fd = -1;
    struct stat st;
    NameKind kind;

    if (count_names(place, "default", suffix, last) == 0)
        return -ENOENT;
    snprintf(path, sizeof(path), "%s/sessions/default", place->path);
    fd = open(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || fstatat(fd, last, &st, 0) < 0 || segment_name_parse(last, &kind, ret_name) < 0)
        return -errno;
    return manifest_read(fd, ret_name, S_ISDIR(st.st_mode), "default", ret);
}

/* Calls fn with each segment of a session that has its final name, by number. */
static inline int each_segment(const Place *place, const char *session,
                               int (*fn)(void *userdata, const char *path), void *userdata) {
    struct dirent **names;
    char path[500];
    int r = 0, n;

    snprintf(path, sizeof(path), "%s/sessions/%s", place->path, session);
    n = scandir(path, &names, dots_filter, alphasort);
    for (int i = 0; i < n; i++) {
        size_t length = strlen(names[i]->d_name), k = strlen(".perf.data");

        snprintf(path, sizeof(path), "%s/sessions/%s/%s", place->path, session, names[i]->d_name);
        if (r == 0 && length > k && strcmp(names[i]->d_name + length - k, ".perf.data") == 0)
            r = fn(userdata, path);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return r;
}

/* Samples that a reader finds in a segment; -1: damaged or not to be read. */
static inline int64_t count_read(const char *path) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    PdRecord record;
    int64_t n = 0;

    if (pd_reader_open(path, NULL, &reader, NULL) < 0)
        return -1;
    while (pd_reader_next(reader, &record) > 0)
        n += record.type == PD_RECORD_SAMPLE;
    return pd_reader_damage(reader) ? -1 : n;
}

static inline int add_samples(void *userdata, const char *path) {
    int64_t n = count_read(path);

    if (n < 0) {
        printf("# '%s' is damaged\n", path);
        return -EBADMSG;
    }
    *(uint64_t *)userdata += (uint64_t)n;
    return 0;
}

/* Samples in all finished segments of a session; -EBADMSG: one is damaged. */
static inline int64_t count_all(const Place *place, const char *session) {
    uint64_t n = 0;
    int r = each_segment(place, session, add_samples, &n);

    return r < 0 ? r : (int64_t)n;
}
