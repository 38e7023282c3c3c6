/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "keeper/serve/serve.h"
#include "scan/scanner.h"

/*
 * Measures reading all processes, in a recorder and in its keeper, as at the start of a recording:
 * CPU, wall clock, and how many processes, threads and mappings were found, as one line of JSON.
 */

typedef struct Told {
    Loop *loop;
    uint64_t processes, threads, maps;
} Told;

static int on_process(void *userdata, const Baseline *baseline) {
    Told *told = userdata;

    told->processes++;
    told->threads += baseline->n_threads;
    told->maps += baseline->n_maps;
    return 0;
}

static int on_records(void *userdata _unused_, Bytes records _unused_) {
    return 0;
}

static int on_cgroup(void *userdata _unused_, uint64_t id _unused_, const char *path _unused_) {
    return 0;
}

static int on_build_id(void *userdata _unused_, uint64_t image _unused_, Bytes id _unused_,
                       uint64_t version _unused_) {
    return 0;
}

static int on_all_done(void *userdata, uint64_t begin_ns _unused_) {
    loop_stop(((Told *)userdata)->loop);
    return 0;
}

static double cpu_us(int who) {
    struct rusage usage;

    if (getrusage(who, &usage) < 0)
        return 0;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static double wall_us(void) {
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void serve(int fd) {
    KeeperHost host;
    ServeContext context = {.host = &host, .listen = -1};
    ServeLink link = {.context = &context, .fd = fd, .may_take_over = true};
    int life[2];

    keeper_host_find(&host);
    if (slots_new(&context.slots) < 0 || pipe(life) < 0)
        _exit(1);
    context.life = life[0];
    while (serve_request(&link) == 0)
        ;
    /* A child process opens files for us. */
    while (wait(NULL) > 0)
        ;
    _exit(0);
}

static int start_keeper(pid_t *ret_pid, Keeper **ret) {
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    *ret_pid = fork();
    if (*ret_pid == 0) {
        (void)close(pair[0]);
        serve(pair[1]);
    }
    (void)close(pair[1]);
    return keeper_connect(pair[0], ret);
}

static int run(Keeper *keeper, Told *told) {
    _cleanup_(loop_freep) Loop *loop = NULL;
    _cleanup_(scanner_freep) Scanner *scanner = NULL;
    ScannerSinks sinks = {.on_process = on_process,
                          .on_kernel = on_records,
                          .on_cgroup = on_cgroup,
                          .on_build_id = on_build_id,
                          .on_all_done = on_all_done,
                          .userdata = told};
    int r = loop_new(&loop);

    told->loop = loop;
    if (r == 0)
        r = scanner_new(keeper, loop, &sinks, &scanner);
    if (r == 0)
        r = scanner_all(scanner);
    return r == 0 ? loop_run(loop) : r;
}

int main(void) {
    _cleanup_(keeper_disconnectp) Keeper *keeper = NULL;
    double wall, cpu;
    Told told = {};
    pid_t pid = -1;
    int r = start_keeper(&pid, &keeper);

    wall = wall_us();
    cpu = cpu_us(RUSAGE_SELF);
    if (r == 0)
        r = run(keeper, &told);
    wall = wall_us() - wall;
    cpu = cpu_us(RUSAGE_SELF) - cpu;
    keeper = keeper_disconnect(keeper);
    (void)waitpid(pid, NULL, 0);
    if (r < 0)
        return 1;
    printf("{\"processes\": %" PRIu64 ", \"threads\": %" PRIu64 ", \"mappings\": %" PRIu64
           ", \"recorder_cpu_us\": %.0f, \"keeper_cpu_us\": %.0f, \"wall_us\": %.0f}\n",
           told.processes, told.threads, told.maps, cpu, cpu_us(RUSAGE_CHILDREN), wall);
    return 0;
}
