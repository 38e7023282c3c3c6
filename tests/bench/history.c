/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "util/clock.h"
#include "util/file.h"

/*
 * Measures a History: many idle processes, then a storm of short-lived ones (fork, exec, five
 * mappings, exit) at 1,000 a second in sweeps of 100 ms, of which one in ten is sampled. Prints one
 * JSON object.
 *
 * Usage: history [PROCESSES [SECONDS]]
 */

enum { MAPS = 20, FILES = 400, STORM_MAPS = 5, SWEEP_MS = 100, FORKS_A_SWEEP = 100, ID = 5 };

#define SAMPLE_TYPE (PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_CPU)

typedef struct Bench {
    PdEvents *events;
    PdEvent *event;
    History *history;
    Emission *emission;
    PdTrailer trailer;
    Buffer record;
    uint64_t time, samples;
} Bench;

static uint64_t resident_bytes(void) {
    char text[256];
    unsigned long size, resident;

    if (file_read_text("/proc/self/statm", text, sizeof(text)) < 0 ||
        sscanf(text, "%lu %lu", &size, &resident) != 2)
        return 0;
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static PdMmap map_of(uint32_t pid, uint32_t i, char path[64]) {
    uint32_t file = (pid / 8 + i * 7) % FILES;
    int n = snprintf(path, 64, "/usr/lib/x86_64-linux-gnu/libsomething-%" PRIu32 ".so.6", file);

    return (PdMmap){.pid = pid,
                    .tid = pid,
                    .start = 0x7f0000000000 + ((uint64_t)pid << 20) + ((uint64_t)i << 13),
                    .length = 0x2000,
                    .major = 8,
                    .inode = 1000 + file,
                    .prot = PROT_READ | PROT_EXEC,
                    .flags = MAP_PRIVATE,
                    .filename = {.data = (const uint8_t *)path, .size = (size_t)n}};
}

static int install(Bench *b, uint32_t pid) {
    PdMmap maps[MAPS];
    char paths[MAPS][64], comm[16];
    BaselineThread thread = {.tid = pid, .comm = comm};
    Baseline baseline = {.pid = pid,
                         .ppid = 1,
                         .begin_ns = b->time,
                         .end_ns = b->time,
                         .threads = &thread,
                         .n_threads = 1,
                         .maps = maps,
                         .n_maps = MAPS};

    (void)snprintf(comm, sizeof(comm), "process-%" PRIu32, pid % 1000);
    for (uint32_t i = 0; i < MAPS; i++)
        maps[i] = map_of(pid, i, paths[i]);
    return history_install(b->history, &baseline);
}

static int feed(Bench *b) {
    PdRecord record = pd_record_at(b->record.data, false);
    int r = buffer_error(&b->record);

    if (r == 0)
        r = history_feed(b->history, &record, b->event);
    buffer_clear(&b->record);
    b->trailer.time = ++b->time;
    return r;
}

static int task(Bench *b, PdRecordType type, uint32_t pid) {
    PdTask t = {.pid = pid, .ppid = 100, .tid = pid, .ptid = 100};

    pd_emit_task(&b->record, &b->trailer, type, 0, &t);
    return feed(b);
}

static int live(Bench *b, uint32_t pid) {
    char path[64];
    int r = task(b, PD_RECORD_FORK, pid);

    pd_emit_comm(&b->record, &b->trailer,
                 &(PdComm){.pid = pid,
                           .tid = pid,
                           .exec = true,
                           .comm = {.data = (const uint8_t *)"short", .size = 5}});
    r = r < 0 ? r : feed(b);
    for (uint32_t i = 0; i < STORM_MAPS && r == 0; i++) {
        PdMmap map = map_of(i, i, path);

        map.pid = map.tid = pid;
        pd_emit_mmap2(&b->record, &b->trailer, PD_MISC_USER, &map);
        r = feed(b);
    }
    return r < 0 ? r : task(b, PD_RECORD_EXIT, pid);
}

static int sweep(Bench *b, uint32_t *pid) {
    uint64_t start = b->time;
    int r = 0;

    for (unsigned i = 0; i < FORKS_A_SWEEP && r == 0; i++)
        r = live(b, 200000 + *pid + i);
    if (r == 0)
        r = history_settle(b->history, b->time);
    for (unsigned i = 0; i < FORKS_A_SWEEP && r == 0; i += 10, b->samples++)
        r = emission_need(b->emission, 200000 + *pid + i, 200000 + *pid + i, start + i * 8 + 5, 0);
    buffer_clear(emission_pending(b->emission));
    *pid += FORKS_A_SWEEP;
    history_complete(b->history, b->time);
    b->time = start + SWEEP_MS * 1000000;
    b->trailer.time = b->time;
    return r;
}

static int begin(Bench *b) {
    PdAttr attr = {
        .type = 1, .size = 128, .sample_type = SAMPLE_TYPE, .flags = PD_ATTR_SAMPLE_ID_ALL};
    uint64_t id = ID;
    int r = pd_events_new(&b->events);

    b->time = NS_PER_SECOND;
    b->trailer = (PdTrailer){.sample_type = SAMPLE_TYPE, .id = ID, .time = b->time};
    if (r == 0)
        r = pd_events_add(b->events, &attr, (Bytes){}, &id, 1, &b->event);
    if (r == 0)
        r = history_new(&(ProcessLimits){.memory_bytes = 1 << 30}, &b->history);
    if (r == 0)
        r = emission_new(b->history, &b->trailer, &b->emission);
    return r < 0 ? r : history_settle(b->history, b->time);
}

static int run(Bench *b, uint32_t processes, unsigned seconds) {
    uint64_t resident = resident_bytes(), began, peak = 0, standing;
    uint32_t pid = 0;
    int r = begin(b);

    began = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (uint32_t i = 0; i < processes && r == 0; i++)
        r = install(b, 100 + i);
    if (r < 0)
        return r;
    standing = history_counts(b->history).memory_bytes;
    printf("{\"processes\": %" PRIu32 ", \"bytes_a_process\": %" PRIu64
           ", \"resident_a_process\": %" PRIu64 ", \"install_ns\": %" PRIu64,
           processes, standing / processes, (resident_bytes() - resident) / processes,
           (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began) / processes);
    began = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (unsigned i = 0; i < seconds * 1000 / SWEEP_MS && r == 0; i++) {
        r = sweep(b, &pid);
        peak = MAX(peak, history_counts(b->history).memory_bytes);
    }
    began = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began;
    for (unsigned i = 0; i < 50 && r == 0; i++) {
        b->time += SWEEP_MS * 1000000;
        r = history_settle(b->history, b->time);
        history_complete(b->history, b->time);
    }
    printf(", \"lives\": %" PRIu32 ", \"life_ns\": %" PRIu64 ", \"storm_bytes\": %" PRIu64
           ", \"left_bytes\": %" PRIi64 ", \"processes_after\": %" PRIu64 "}\n",
           pid, began / (pid ? pid : 1), peak - standing,
           (int64_t)(history_counts(b->history).memory_bytes - standing),
           history_counts(b->history).processes);
    return r;
}

int main(int argc, char **argv) {
    uint32_t processes = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 50000;
    unsigned seconds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 60;
    Bench b = {};
    int r = processes > 0 && processes < 150000 ? run(&b, processes, seconds) : -1;

    emission_free(b.emission);
    history_free(b.history);
    pd_events_free(b.events);
    buffer_done(&b.record);
    return r < 0;
}
