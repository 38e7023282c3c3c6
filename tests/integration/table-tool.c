/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeper/keeper.h"
#include "keeper/request/keeper-client.h"
#include "keeper/rights/sandbox.h"
#include "tracker/tracker.h"
#include "util/clock.h"
#include "util/file.h"

/*
 * A keeper with a recorder that records nothing and wants unwind tables, for test-elf-table.py:
 * `table-tool FOLDER` keeps, and what the keeper starts from it, with --recorder=FD, wants the
 * tables of the mappings in FOLDER/maps, again and again, as the drain will. Each line is a
 * PID and a line of its maps. Changes of state are written to FOLDER/log: "NUMBER STATE ROWS" with
 * the number of the line, and "counts FILES READY REFUSED TABLES".
 */

enum { TICK_MS = 10, MAPPINGS_MAX = 256, PATH_SIZE = 4096 };

static const char *const state_names[] = {
    [TABLE_UNKNOWN] = "unknown",
    [TABLE_PENDING] = "pending",
    [TABLE_REFUSED] = "refused",
    [TABLE_READY] = "ready",
};

typedef struct Mapping {
    MappedImage image;
    char path[PATH_SIZE];
    TableState state; /* that was noted last */
} Mapping;

typedef struct Recorder {
    const char *folder;
    Keeper *keeper;
    Loop *loop;
    Tracker *tracker;
    Mapping mappings[MAPPINGS_MAX];
    size_t n_mappings;
    uint64_t version;
} Recorder;

static _printf_(2, 3) void note(const Recorder *recorder, const char *format, ...) {
    char path[512], line[256];
    _cleanup_close_ int fd = -1;
    va_list ap;
    int n;

    va_start(ap, format);
    n = vsnprintf(line, sizeof(line) - 1, format, ap);
    va_end(ap);
    line[n++] = '\n';
    snprintf(path, sizeof(path), "%s/log", recorder->folder);
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0)
        (void)file_write_all(fd, line, (size_t)n);
}

/* "PID START-END rwxp OFFSET MAJ:MIN INODE PATH", of those that were not there before. */
static void read_mappings(Recorder *recorder) {
    char path[512], line[PATH_SIZE + 256];
    size_t n = 0;
    FILE *maps;

    snprintf(path, sizeof(path), "%s/maps", recorder->folder);
    maps = fopen(path, "re");
    for (; maps && n < MAPPINGS_MAX && fgets(line, sizeof(line), maps); n++) {
        Mapping *mapping = &recorder->mappings[n];
        MappedImage *image = &mapping->image;

        if (n < recorder->n_mappings)
            continue;
        if (sscanf(line,
                   "%" SCNu32 " %" SCNx64 "-%*x %*s %*x %" SCNx32 ":%" SCNx32 " %" SCNu64
                   " %4095[^\n]",
                   &image->pid, &image->start, &image->major, &image->minor, &image->inode,
                   mapping->path) != 6)
            break;
        image->path = mapping->path;
        recorder->n_mappings = n + 1;
    }
    if (maps)
        (void)fclose(maps);
}

static void note_counts(Recorder *recorder) {
    TableCache *tables = tracker_tables(recorder->tracker);
    TableCacheCounts counts = table_cache_counts(tables);

    if (table_cache_version(tables) == recorder->version)
        return;
    recorder->version = table_cache_version(tables);
    note(recorder, "counts %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, counts.files,
         counts.ready, counts.refused, counts.tables);
}

static int want_tables(void *userdata) {
    Recorder *recorder = userdata;

    read_mappings(recorder);
    for (size_t i = 0; i < recorder->n_mappings; i++) {
        Mapping *mapping = &recorder->mappings[i];
        const UnwindTable *table = NULL;
        TableState state;

        (void)table_cache_want(tracker_tables(recorder->tracker), &mapping->image,
                               clock_monotonic_ns());
        state = table_cache_find(tracker_tables(recorder->tracker), &mapping->image, &table);
        if (state == mapping->state)
            continue;
        mapping->state = state;
        note(recorder, "%zu %s %" PRIu32, i, state_names[state], table ? table->header.n_rows : 0);
    }
    note_counts(recorder);
    return 0;
}

static int ignore(void *userdata _unused_) {
    return 0;
}

static int stop(void *userdata) {
    loop_stop(((Recorder *)userdata)->loop);
    return 0;
}

static int run(Recorder *recorder) {
    TrackerOptions options = {.keeper = recorder->keeper,
                              .loop = recorder->loop,
                              .on_ready = ignore,
                              .on_due = ignore,
                              .userdata = recorder};
    int r = tracker_new(&options, &recorder->tracker);

    if (r == 0)
        r = loop_add_signal(recorder->loop, SIGTERM, stop, recorder, NULL);
    if (r == 0)
        r = loop_add_timer(recorder->loop, TICK_MS * 1000000ULL, want_tables, recorder, NULL);
    if (r == 0)
        r = keeper_ready(recorder->keeper);
    if (r == 0)
        r = loop_run(recorder->loop);
    tracker_free(recorder->tracker);
    return r;
}

static int be_recorder(const char *folder, int socket) {
    static Recorder recorder;
    int r = sandbox_recorder();

    recorder.folder = folder;
    if (r == 0)
        r = keeper_connect(socket, &recorder.keeper);
    if (r == 0)
        r = keeper_take_over(recorder.keeper);
    if (r == 0)
        r = loop_new(&recorder.loop);
    if (r == 0)
        r = run(&recorder);
    note(&recorder, "end %d", r);
    loop_free(recorder.loop);
    keeper_disconnect(recorder.keeper);
    return r < 0 ? EXIT_FAILURE : 0;
}

int main(int argc, char **argv) {
    static const char option[] = "--recorder=";
    char store[512];

    if (argc < 2)
        return 2;
    if (argc == 3 && strncmp(argv[2], option, strlen(option)) == 0)
        return be_recorder(argv[1], atoi(argv[2] + strlen(option)));
    snprintf(store, sizeof(store), "%s/store", argv[1]);
    return keeper_run(&(KeeperOptions){.argv = argv, .store = store});
}
