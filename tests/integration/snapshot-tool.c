/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/manifest/manifest.h"
#include "store/snapshot/snapshot-engine.h"
#include "util/clock.h"

/*
 * The snapshot engine on a store that no daemon records into, for tests. Times are by the clock of
 * the samples, in nanoseconds, 0: open; with --real by the time of day. Several windows are made
 * one after the other, or with --together side by side.
 *
 * Usage: snapshot-tool [OPTION…] STORE SESSION [NAME SINCE UNTIL]…
 *
 * A line for each: NAME PATH SAMPLES LOST FIRST LAST MILLISECONDS [PARTIAL…], or NAME and an error.
 */

enum { MAX_WINDOWS = 256 };

typedef struct Tool {
    Loop *loop;
    Config *config;
    Store *store;
    Worker *housekeeper;
    SnapshotEngine *engine;
    SnapshotRequest request;
    uint32_t pids[8];
    const char *comms[8], *cgroups[8];
    bool together;
    unsigned waiting;
    int status;
} Tool;

typedef struct One {
    Tool *tool;
    const char *name;
    uint64_t began_ns;
} One;

static void on_done(void *userdata, const SnapshotFailure *failure, const SnapshotInfo *info) {
    One *one = userdata;
    uint64_t ms = (clock_monotonic_ns() - one->began_ns) / 1000000;

    if (failure) {
        printf("%s\terror %d code %d oldest %" PRIu64 " newest %" PRIu64 " limit %" PRIu64
               " need %" PRIu64 "\t%s\n",
               one->name, failure->error, failure->code, failure->oldest_ns, failure->newest_ns,
               failure->limit_bytes, failure->need_bytes, failure->text);
        one->tool->status = 1;
    } else {
        printf("%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64, info->name,
               info->path, info->samples, info->lost, info->first_ns, info->last_ns, ms);
        for (size_t i = 0; i < info->n_partial; i++)
            printf("\t%s", info->partial[i]);
        printf("\n");
    }
    if (--one->tool->waiting == 0)
        loop_stop(one->tool->loop);
}

static int begin(Tool *tool, One *one, char **window) {
    Snapshot *snapshot;
    int r;

    *one = (One){.tool = tool, .name = window[0], .began_ns = clock_monotonic_ns()};
    tool->request.name = window[0];
    tool->request.since_ns = strtoull(window[1], NULL, 10);
    tool->request.until_ns = strtoull(window[2], NULL, 10);
    r = snapshot_begin(tool->engine, &tool->request,
                       &(SnapshotCallbacks){.on_done = on_done, .userdata = one}, &snapshot);
    if (r < 0) {
        printf("%s\trefused: %s\n", window[0], strerror(-r));
        tool->status = 1;
        return 0;
    }
    tool->waiting++;
    return tool->together ? 0 : loop_run(tool->loop);
}

static int run(Tool *tool, char **arguments) {
    static One ones[MAX_WINDOWS];
    int r = config_new(&tool->config), n = 0;

    if (r == 0)
        r = loop_new(&tool->loop);
    if (r == 0)
        r = store_open(&(StoreOptions){.path = arguments[0], .config = tool->config}, &tool->store);
    if (r == 0)
        r = housekeeper_new(tool->loop, "profd-house", &tool->housekeeper);
    if (r == 0)
        r = snapshot_engine_new(tool->store, tool->loop, tool->housekeeper, &tool->engine);
    tool->request.session = arguments[1];
    for (char **window = arguments + 2;
         r == 0 && window[0] && window[1] && window[2] && n < MAX_WINDOWS; window += 3)
        r = begin(tool, &ones[n++], window);
    return r == 0 && tool->waiting > 0 ? loop_run(tool->loop) : r;
}

static void set_cpus(SnapshotFilter *filter, char *list) {
    filter->by_cpu = true;
    for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
        unsigned cpu = (unsigned)atoi(word) % MANIFEST_CPUS_MAX;

        filter->cpus[cpu / 8] |= (uint8_t)(1 << cpu % 8);
    }
}

/* Returns the index of the first argument; a negative number: an option is unknown. */
static int take_options(Tool *tool, int argc, char **argv) {
    static const struct option options[] = {
        {"real", no_argument, NULL, 'r'},
        {"together", no_argument, NULL, 't'},
        {"layout", required_argument, NULL, 'l'},
        {"level", required_argument, NULL, 'z'},
        {"pid", required_argument, NULL, 'p'},
        {"comm", required_argument, NULL, 'c'},
        {"cgroup", required_argument, NULL, 'g'},
        {"cpu", required_argument, NULL, 'u'},
        {},
    };
    SnapshotRequest *request = &tool->request;
    SnapshotFilter *filter = &request->filter;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (c) {
        case 'r':
            request->by_monotonic = false;
            break;
        case 't':
            tool->together = true;
            break;
        case 'l':
            request->layout = strcmp(optarg, "directory") == 0 ? LAYOUT_DIRECTORY : LAYOUT_FILE;
            break;
        case 'z':
            request->zstd_level = atoi(optarg);
            request->keep_frames = false;
            break;
        case 'p':
            tool->pids[filter->n_pids++ % 8] = (uint32_t)atoi(optarg);
            break;
        case 'c':
            tool->comms[filter->n_comms++ % 8] = optarg;
            break;
        case 'g':
            tool->cgroups[filter->n_cgroups++ % 8] = optarg;
            break;
        case 'u':
            set_cpus(filter, optarg);
            break;
        default:
            return -EINVAL;
        }
    return optind;
}

int main(int argc, char **argv) {
    Tool tool = {
        .request = {
            .by_monotonic = true, .zstd_level = 3, .keep_frames = true, .privileged = true}};
    int first, r;

    tool.request.filter.pids = tool.pids;
    tool.request.filter.comms = tool.comms;
    tool.request.filter.cgroups = tool.cgroups;
    first = take_options(&tool, argc, argv);
    if (first < 0 || argc - first < 2)
        return 2;
    r = run(&tool, argv + first);
    if (r < 0)
        fprintf(stderr, "snapshot-tool: %s\n", strerror(-r));
    worker_free(tool.housekeeper);
    snapshot_engine_free(tool.engine);
    store_free(tool.store);
    config_free(tool.config);
    loop_free(tool.loop);
    return r < 0 ? 1 : tool.status;
}
