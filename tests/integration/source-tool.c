/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "interval/series.h"
#include "label/label-set.h"
#include "source/source.h"
#include "util/clock.h"
#include "util/file.h"

/*
 * The source of the gateway without a gateway: prints the live intervals, as many as it is asked
 * for, and then each of them again, read as a window of the past. A line has the times, what was
 * not recorded, the samples, those in functions of the load, the times of the first and the last
 * sample, and the number of samples of each series of one service.
 *
 *     source-tool SOCKET SECONDS INTERVALS [CACHE]
 *     source-tool SOCKET SECONDS 0 CACHE SINCE UNTIL [N [urgent]]
 *
 * reads a window alone, or N windows of the same length; -N: the last one first.
 */

enum { INTERVALS_MAX = 100000, TEXT_MAX = 4096 };

typedef struct Tool {
    Loop *loop;
    Source *source;
    SourceJob *job;
    unsigned long wanted;
    struct {
        uint64_t since_ns, until_ns;
    } intervals[INTERVALS_MAX];
    unsigned long n, n_read;
    bool is_urgent;
    const char *problem;
} Tool;

static Tool tool;

static void tool_print_series(const Interval *interval) {
    SeriesList list;

    if (series_list_make(interval, &(SeriesOptions){.host = "tool"}, &list) < 0)
        return;
    for (size_t i = 0; i < list.n; i++) {
        const LabelSet *labels = &list.items[i].labels;
        const char *service = label_set_get(labels, "service_name"),
                   *comm = label_set_get(labels, "comm");

        printf(" %s|%s=%" PRIu64, service, comm ? comm : "", list.items[i].samples);
    }
    series_list_done(&list);
}

/* Samples in a function of the load, by its name. */
static uint64_t tool_count_named(const Interval *interval) {
    const Profile *profile = interval->profile;
    uint64_t n = 0;

    for (size_t i = 0; i < profile->n_cells; i++) {
        uint32_t frame = stack_tree_node(profile->stacks, profile->cells[i].stack)->frame;
        Bytes name = frame < interval->names->n_names ? frame_names_function(interval->names, frame)
                                                      : (Bytes){};

        if (name.size > 5 && memcmp(name.data, "spin_", 5) == 0)
            n += profile->cells[i].samples;
    }
    return n;
}

static void tool_print(const char *what, const Interval *interval) {
    const Profile *profile = interval->profile;

    printf("%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
           what, interval->since_ns, interval->until_ns, interval->missing_ns, profile->samples,
           tool_count_named(interval), profile->first_ns, profile->last_ns);
    tool_print_series(interval);
    printf("\n");
    (void)fflush(stdout);
}

static void tool_read_next(void);

static void tool_on_window(void *userdata, int error, Interval *interval) {
    tool.job = NULL;
    if (error < 0)
        printf("error %" PRIu64 " %s\n", tool.intervals[tool.n_read].since_ns, strerror(-error));
    else
        tool_print("window", interval);
    tool.n_read++;
    tool_read_next();
}

static void tool_read_next(void) {
    const SourceWindow window = {.since_ns = tool.intervals[tool.n_read].since_ns,
                                 .until_ns = tool.intervals[tool.n_read].until_ns,
                                 .is_urgent = tool.is_urgent};

    if (tool.n_read == tool.n ||
        source_window(tool.source, &window, tool_on_window, NULL, &tool.job) < 0)
        loop_stop(tool.loop);
}

static void tool_on_interval(void *userdata, Interval *interval) {
    if (tool.n >= tool.wanted)
        return;
    tool_print("live", interval);
    tool.intervals[tool.n].since_ns = interval->since_ns;
    tool.intervals[tool.n++].until_ns = interval->until_ns;
    if (tool.n == tool.wanted)
        tool_read_next();
}

static int tool_on_second(void *userdata) {
    SourceStatus status;

    source_status(tool.source, &status);
    if (*status.problem)
        fprintf(stderr, "%s\n", status.problem);
    return 0;
}

/* A line of /proc/self/status. */
static void tool_print_memory(const char *key) {
    char text[TEXT_MAX];
    const char *line;

    if (file_read_text("/proc/self/status", text, sizeof(text)) < 0)
        return;
    line = strstr(text, key);
    if (line)
        printf("%.*s\n", (int)strcspn(line, "\n"), line);
}

static void tool_print_costs(void) {
    SourceStatus status;
    struct rusage usage;

    source_status(tool.source, &status);
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("connections %" PRIu64 " skipped %" PRIu64 " gaps %" PRIu64 " cpu_ms %ld\n",
           status.connections, status.skipped, status.gaps,
           (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
               (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000);
    tool_print_memory("VmHWM");
    tool_print_memory("VmRSS");
    tool_print_memory("RssAnon");
}

/* Windows of one length, one after the other, the last one first where n is negative. */
static void tool_add_windows(uint64_t since_ns, uint64_t until_ns, long n) {
    unsigned long count = MIN((unsigned long)labs(n), (unsigned long)INTERVALS_MAX);
    uint64_t length = (until_ns - since_ns) / MAX(count, 1UL);

    for (unsigned long i = 0; i < count; i++) {
        uint64_t at_ns = since_ns + (n < 0 ? count - 1 - i : i) * length;

        tool.intervals[tool.n].since_ns = at_ns;
        tool.intervals[tool.n++].until_ns = at_ns + length;
    }
}

int main(int argc, char **argv) {
    SourceOptions options = {.interval_ns = NS_PER_SECOND, .on_interval = tool_on_interval};
    int r;

    if (argc < 4)
        return 2;
    options.socket = argv[1];
    options.interval_ns = strtoull(argv[2], NULL, 10) * NS_PER_SECOND;
    tool.wanted = MIN(strtoul(argv[3], NULL, 10), (unsigned long)INTERVALS_MAX);
    options.cache_folder = argc > 4 ? argv[4] : NULL;
    r = loop_new(&tool.loop);
    options.loop = tool.loop;
    if (r == 0)
        r = loop_add_timer(tool.loop, NS_PER_SECOND, tool_on_second, NULL, NULL);
    if (r == 0)
        r = source_new(&options, &tool.source);
    if (r == 0)
        r = source_start(tool.source);
    if (argc > 6) {
        tool.is_urgent = argc > 8;
        tool_add_windows(strtoull(argv[5], NULL, 10), strtoull(argv[6], NULL, 10),
                         argc > 7 ? strtol(argv[7], NULL, 10) : 1);
        tool_read_next();
    }
    if (r == 0)
        r = loop_run(tool.loop);
    if (r == 0)
        tool_print_costs();
    source_free(tool.source);
    loop_free(tool.loop);
    return r < 0;
}
