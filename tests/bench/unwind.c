/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <time.h>

#include "make-unwind.h"
#include "take-samples.h"

/*
 * What unwinding costs: the table of each file that a command has mapped, and then, of samples that
 * were taken of it, the time of a walk and of a frame. "warm" walks a few samples over and over, so
 * that their stacks lie in the caches of the CPU, and "bare" does so without a cache of rules;
 * "cold" walks so many that each stack comes from memory, as it does where rings are emptied.
 *
 * Usage: unwind [COMMAND [ARGUMENT…]]; prints one JSON object
 */

enum { DUMP = 16 << 10, MS = 3000, WARM_SAMPLES = 40, WARM_ROUNDS = 1000, COLD_ROUNDS = 10 };

typedef struct Figures {
    uint64_t walks, frames, ns, hits, misses;
    uint64_t verdicts[UNWIND_VERDICTS];
} Figures;

/* How long the last n samples take, once. */
static void walk_some(const Samples *samples, size_t n, const Scene *scene, UnwindCache *cache,
                      Figures *figures) {
    uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);

    for (size_t i = samples->n - MIN(n, samples->n); i < samples->n; i++) {
        UnwindChain chain;
        UnwindVerdict verdict;

        if (samples->all[i].pid != (uint32_t)samples->pid)
            continue;
        verdict = unwind_walk(&samples->all[i].sample, &scene->space, cache, &chain);
        figures->verdicts[verdict]++;
        figures->walks++;
        figures->frames += chain.n;
    }
    figures->ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

static void print_tables(const Scene *scene) {
    uint64_t rows = 0, bytes = 0, ns = 0, n = 0;

    for (size_t i = 0; i < scene->n_files; i++) {
        _cleanup_(buffer_done) Buffer image = {};
        uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        int fd = open(scene->files[i].path, O_RDONLY | O_CLOEXEC);

        if (fd >= 0 && unwind_compile_fd(fd, &image) == 0) {
            ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
            rows += scene->files[i].table.header.n_rows;
            bytes += image.size;
            n++;
        }
        if (fd >= 0)
            close(fd);
    }
    printf("  \"tables\": {\"files\": %llu, \"rows\": %llu, \"bytes\": %llu, \"ms\": %.1f},\n",
           (unsigned long long)n, (unsigned long long)rows, (unsigned long long)bytes,
           (double)ns / 1e6);
}

static void print_figures(const char *name, const Figures *f, const char *end) {
    printf("  \"%s\": {\"usPerSample\": %.2f, \"nsPerFrame\": %.1f}%s\n", name,
           (double)f->ns / (double)MAX(f->walks, 1ULL) / 1000,
           (double)f->ns / (double)MAX(f->frames, 1ULL), end);
}

static void print_verdicts(const Samples *samples, const Figures *f) {
    printf("  \"samples\": %zu, \"framesPerSample\": %.1f", samples->n,
           f->walks ? (double)f->frames / (double)f->walks : 0);
    for (unsigned i = 0; i < UNWIND_VERDICTS; i++)
        if (f->verdicts[i] > 0)
            printf(", \"%s\": %.4f", unwind_verdict_name(i),
                   (double)f->verdicts[i] / (double)f->walks);
    printf(",\n");
}

int main(int argc, char **argv) {
    static char *const python[] = {"/usr/bin/python3", "-c",
                                   "while True: sorted(str(i) for i in range(99))", NULL};
    static UnwindCache cache;
    _cleanup_(samples_done) Samples samples = {};
    _cleanup_(scene_freep) Scene *scene = NULL;
    Figures warm = {}, bare = {}, cold = {};
    int r = samples_take(argc > 1 ? argv + 1 : python, MS, DUMP, &samples);

    if (r == 0 && samples.n == 0)
        r = -ENODATA;
    if (r < 0) {
        fprintf(stderr, "unwind: No samples could be taken: %s\n", strerror(-r));
        return EXIT_FAILURE;
    }
    scene = scene_new(samples.pid);
    for (unsigned i = 0; i < WARM_ROUNDS; i++) {
        walk_some(&samples, WARM_SAMPLES, scene, &cache, &warm);
        walk_some(&samples, WARM_SAMPLES, scene, NULL, &bare);
    }
    cache.hits = cache.misses = 0;
    for (unsigned i = 0; i < COLD_ROUNDS; i++)
        walk_some(&samples, samples.n, scene, &cache, &cold);
    cold.hits = cache.hits;
    cold.misses = cache.misses;
    printf("{\n");
    print_tables(scene);
    print_verdicts(&samples, &cold);
    printf("  \"cacheHits\": %.3f,\n",
           (double)cold.hits / (double)MAX(cold.hits + cold.misses, 1ULL));
    print_figures("warm", &warm, ",");
    print_figures("bare", &bare, ",");
    print_figures("cold", &cold, "");
    printf("}\n");
    return EXIT_SUCCESS;
}
