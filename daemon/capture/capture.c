/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/capture.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "capture/ring.h"
#include "util/file.h"
#include "util/log.h"

/*
 * Owns the descriptors and rings of every CPU. Side-band lives in its own small rings, because a
 * lost MMAP spoils a thousand samples and a lost sample spoils none. A sweep is what orders the
 * two: see capture.h. The attrs are built as PdAttr and encoded, so that the bytes in the file are
 * the bytes the kernel was given.
 */

enum {
    SIDE_BAND_RING_BYTES = 512 * 1024,
    WATERMARK_SAMPLES = 2, /* a wake-up when a half of the ring is full */
    WATERMARK_SIDE_BAND = 8,
    CPUS_MAX = 4096,
    COUNT_SW_CPU_CLOCK = 0,
    COUNT_SW_DUMMY = 9,
};

#define READ_FORMAT    (PD_FORMAT_ID | PD_FORMAT_LOST)
#define SAMPLE_ID_TYPE (PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_CPU)

typedef struct Counter {
    int fd;
    uint64_t id;
    Ring ring;
} Counter;

typedef struct CpuCapture {
    unsigned cpu;
    Counter samples, side_band;
    uint64_t noted_head;
} CpuCapture;

struct Capture {
    PdEvents *events;
    CpuCapture *cpus;
    size_t n_cpus;
    Buffer taken;
    const char *event_name;
};

static void counter_done(Counter *c) {
    ring_done(&c->ring);
    closep(&c->fd);
}

static int counter_init(Counter *c, const PdAttr *attr, unsigned cpu, uint64_t ring_bytes) {
    _cleanup_(buffer_done) Buffer bytes = {};
    struct {
        uint64_t value, id, lost;
    } values;
    int r;

    pd_attr_encode(attr, pd_attr_size_needed(attr), &bytes, false);
    r = buffer_error(&bytes);
    if (r < 0)
        return r;
    c->fd = (int)syscall(SYS_perf_event_open, bytes.data, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (c->fd < 0)
        return -errno;
    if (read(c->fd, &values, sizeof(values)) != sizeof(values))
        return -EIO;
    c->id = values.id;
    return ring_init(&c->ring, c->fd, ring_bytes);
}

static PdAttr sample_attr(const CaptureOptions *options, uint32_t type, uint64_t config) {
    bool is_clock = type == PD_TYPE_SOFTWARE;

    return (PdAttr){
        .type = type,
        .config = config,
        .sample_period = options->frequency_hz,
        .sample_type = SAMPLE_ID_TYPE | PD_SAMPLE_IP | PD_SAMPLE_PERIOD |
                       (options->call_graph ? PD_SAMPLE_CALLCHAIN : 0),
        .read_format = READ_FORMAT,
        .flags = PD_ATTR_DISABLED | PD_ATTR_FREQ | PD_ATTR_WATERMARK | PD_ATTR_SAMPLE_ID_ALL |
                 PD_ATTR_USE_CLOCKID | PD_ATTR_EXCLUDE_GUEST |
                 (options->exclude_kernel ? PD_ATTR_EXCLUDE_KERNEL : 0) |
                 (is_clock && options->exclude_idle ? PD_ATTR_EXCLUDE_IDLE : 0),
        .wakeup_events = (uint32_t)(options->ring_bytes / WATERMARK_SAMPLES),
        .clockid = CLOCK_MONOTONIC,
    };
}

/*
 * Build ids are not asked for: kernels leave MISC_MMAP_BUILD_ID set for the events that are told of
 * the same mapping after ours, and a perf record that ran before us then takes inode numbers for a
 * build id and aborts.
 */
static PdAttr side_band_attr(void) {
    return (PdAttr){
        .type = PD_TYPE_SOFTWARE,
        .config = COUNT_SW_DUMMY,
        .sample_period = 1,
        .sample_type = SAMPLE_ID_TYPE,
        .read_format = READ_FORMAT,
        .flags = PD_ATTR_WATERMARK | PD_ATTR_SAMPLE_ID_ALL | PD_ATTR_USE_CLOCKID | PD_ATTR_MMAP |
                 PD_ATTR_MMAP2 | PD_ATTR_COMM | PD_ATTR_COMM_EXEC | PD_ATTR_TASK | PD_ATTR_KSYMBOL |
                 PD_ATTR_BPF_EVENT,
        .wakeup_events = SIDE_BAND_RING_BYTES / WATERMARK_SIDE_BAND,
        .clockid = CLOCK_MONOTONIC,
    };
}

/* "0-3,8": the list that the kernel prints. */
static int parse_cpus(const char *list, unsigned *cpus, size_t *ret_n) {
    size_t n = 0;

    while (*list >= '0' && *list <= '9') {
        char *end;
        unsigned long first = strtoul(list, &end, 10), last = first;

        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (first > last || last >= CPUS_MAX)
            return -ERANGE;
        for (; first <= last && n < CPUS_MAX; first++)
            cpus[n++] = (unsigned)first;
        list = *end == ',' ? end + 1 : end;
    }
    if (n == 0)
        return -EBADMSG;
    *ret_n = n;
    return 0;
}

static int online_cpus(unsigned *cpus, size_t *ret_n) {
    static const char path[] = "/sys/devices/system/cpu/online";
    char list[4096];
    int r = file_read_text(path, list, sizeof(list));

    if (r < 0)
        return log_error(r, "Failed to read the list of CPUs from '%s': %m", path);
    r = parse_cpus(list, cpus, ret_n);
    return r < 0 ? log_error(r, "The list of CPUs in '%s' makes no sense: '%s'", path, list) : 0;
}

static int log_open_failure(int error, const char *event, unsigned cpu) {
    if (error == -EACCES || error == -EPERM)
        return log_error(error,
                         "Not permitted to open '%s' on CPU %u: recording all CPUs needs root or "
                         "CAP_PERFMON, and CAP_SYS_ADMIN where kernel.perf_event_paranoid is 3",
                         event, cpu);
    if (error == -EMFILE)
        return log_error(error,
                         "Too few file descriptors to open '%s' on CPU %u, two a CPU are needed: "
                         "raise LimitNOFILE= or ulimit -n",
                         event, cpu);
    return log_error(error, "Failed to open '%s' on CPU %u: %m", event, cpu);
}

/* What to count is settled on the first CPU, for all of them. */
static int choose_event(Capture *capture, const CaptureOptions *options, unsigned cpu,
                        PdAttr *ret) {
    Counter probe = {.fd = -1};
    PdAttr attr = sample_attr(options, PD_TYPE_HARDWARE, 0);
    int r = counter_init(&probe, &attr, cpu, options->ring_bytes);

    counter_done(&probe);
    capture->event_name = "cycles";
    if (r == -ENOENT || r == -EOPNOTSUPP) {
        log_notice("This machine counts no CPU cycles, sampling cpu-clock instead");
        capture->event_name = "cpu-clock";
        attr = sample_attr(options, PD_TYPE_SOFTWARE, COUNT_SW_CPU_CLOCK);
    } else if (r < 0)
        return log_open_failure(r, "cycles", cpu);
    *ret = attr;
    return 0;
}

static int open_cpu(CpuCapture *c, const PdAttr *samples, const PdAttr *side_band,
                    const CaptureOptions *options, const char *event_name) {
    int r = counter_init(&c->side_band, side_band, c->cpu, SIDE_BAND_RING_BYTES);

    if (r < 0)
        return log_open_failure(r, "dummy", c->cpu);
    r = counter_init(&c->samples, samples, c->cpu, options->ring_bytes);
    return r < 0 ? log_open_failure(r, event_name, c->cpu) : 0;
}

/* The table that the file will hold: one event with the ids of all its counters. */
static int add_event(Capture *capture, const PdAttr *attr, size_t counter_offset,
                     const char *name) {
    _cleanup_free_ uint64_t *ids = calloc(capture->n_cpus, sizeof(*ids));
    PdEvent *event;
    int r;

    if (!ids)
        return -ENOMEM;
    for (size_t i = 0; i < capture->n_cpus; i++)
        ids[i] = ((const Counter *)((const char *)&capture->cpus[i] + counter_offset))->id;
    r = pd_events_add(capture->events, attr, (Bytes){}, ids, capture->n_cpus, &event);
    if (r < 0)
        return r;
    return pd_events_set_name(capture->events, event,
                              (Bytes){.data = (const uint8_t *)name, .size = strlen(name)});
}

int capture_new(const CaptureOptions *options, Capture **ret) {
    _cleanup_(capture_freep) Capture *capture = calloc(1, sizeof(*capture));
    PdAttr samples, side_band = side_band_attr();
    unsigned cpus[CPUS_MAX];
    size_t n = 0;
    int r;

    if (!capture)
        return -ENOMEM;
    r = online_cpus(cpus, &n);
    if (r < 0)
        return r;
    capture->cpus = calloc(n, sizeof(*capture->cpus));
    if (!capture->cpus)
        return -ENOMEM;
    for (; capture->n_cpus < n; capture->n_cpus++)
        capture->cpus[capture->n_cpus] =
            (CpuCapture){.cpu = cpus[capture->n_cpus], .samples.fd = -1, .side_band.fd = -1};
    r = choose_event(capture, options, cpus[0], &samples);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        r = open_cpu(&capture->cpus[i], &samples, &side_band, options, capture->event_name);
        if (r < 0)
            return r;
    }
    r = pd_events_new(&capture->events);
    if (r == 0)
        r = add_event(capture, &samples, offsetof(CpuCapture, samples), capture->event_name);
    if (r == 0)
        r = add_event(capture, &side_band, offsetof(CpuCapture, side_band), "dummy");
    if (r < 0)
        return r;
    *ret = TAKE_PTR(capture);
    return 0;
}

Capture *capture_free(Capture *capture) {
    if (!capture)
        return NULL;
    for (size_t i = 0; i < capture->n_cpus; i++) {
        counter_done(&capture->cpus[i].samples);
        counter_done(&capture->cpus[i].side_band);
    }
    pd_events_free(capture->events);
    buffer_done(&capture->taken);
    free(capture->cpus);
    free(capture);
    return NULL;
}

static int control_samples(Capture *capture, unsigned long request) {
    for (size_t i = 0; i < capture->n_cpus; i++)
        if (ioctl(capture->cpus[i].samples.fd, request, 0) < 0)
            return -errno;
    return 0;
}

int capture_start(Capture *capture) {
    return control_samples(capture, PERF_EVENT_IOC_ENABLE);
}

int capture_stop(Capture *capture) {
    return control_samples(capture, PERF_EVENT_IOC_DISABLE);
}

static int drain(Capture *capture, CpuCapture *c, bool side_band, CaptureSink sink,
                 void *userdata) {
    Ring *ring = side_band ? &c->side_band.ring : &c->samples.ring;
    uint64_t head = side_band ? ring_head(ring) : c->noted_head;
    Batch batch = {.cpu = c->cpu, .side_band = side_band};
    int r;

    buffer_clear(&capture->taken);
    r = ring_take(ring, head, &capture->taken);
    if (r < 0)
        return r;
    batch.records = buffer_bytes(&capture->taken);
    return batch.records.size > 0 ? sink(userdata, &batch) : 0;
}

int capture_sweep(Capture *capture, CaptureSink sink, void *userdata) {
    int r;

    for (size_t i = 0; i < capture->n_cpus; i++)
        capture->cpus[i].noted_head = ring_head(&capture->cpus[i].samples.ring);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < capture->n_cpus; i++) {
            r = drain(capture, &capture->cpus[i], pass == 0, sink, userdata);
            if (r < 0)
                return r;
        }
    return 0;
}

const PdEvents *capture_events(const Capture *capture) {
    return capture->events;
}

size_t capture_n_cpus(const Capture *capture) {
    return capture->n_cpus;
}

int capture_each_fd(Capture *capture, int (*fn)(void *userdata, int fd), void *userdata) {
    int r = 0;

    for (size_t i = 0; i < capture->n_cpus && r == 0; i++) {
        r = fn(userdata, capture->cpus[i].samples.fd);
        if (r == 0)
            r = fn(userdata, capture->cpus[i].side_band.fd);
    }
    return r;
}

int capture_lost(const Capture *capture, size_t index, unsigned *ret_cpu, uint64_t *ret_lost) {
    const CpuCapture *c = &capture->cpus[index];
    struct {
        uint64_t value, id, lost;
    } values;

    if (read(c->samples.fd, &values, sizeof(values)) != sizeof(values))
        return -EIO;
    *ret_cpu = c->cpu;
    *ret_lost = values.lost;
    return 0;
}

const char *capture_event_name(const Capture *capture) {
    return capture->event_name;
}
