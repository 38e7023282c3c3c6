/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/baseline.h"

#include <stdlib.h>
#include <string.h>

/*
 * A Baseline that is passed from the reading thread to the main thread: the struct, its arrays and
 * its names in one allocation, so that a single free() releases it.
 */

static size_t baseline_names_size(const Baseline *b) {
    size_t n = 0;

    for (size_t i = 0; i < b->n_threads; i++)
        n += strlen(b->threads[i].comm) + 1;
    for (size_t i = 0; i < b->n_maps; i++)
        n += b->maps[i].filename.size + b->maps[i].build_id_size;
    return n;
}

static char *baseline_put(char *to, const void *from, size_t size) {
    if (size > 0)
        memcpy(to, from, size);
    return to + size;
}

size_t baseline_size(const Baseline *b) {
    return sizeof(*b) + b->n_maps * sizeof(*b->maps) + b->n_threads * sizeof(*b->threads) +
           baseline_names_size(b);
}

Baseline *baseline_copy(const Baseline *baseline) {
    Baseline *copy = malloc(baseline_size(baseline));
    BaselineThread *threads;
    PdMmap *maps;
    char *to;

    if (!copy)
        return NULL;
    *copy = *baseline;
    maps = (PdMmap *)(copy + 1);
    threads = (BaselineThread *)(maps + copy->n_maps);
    to = (char *)(threads + copy->n_threads);
    for (size_t i = 0; i < copy->n_threads; i++) {
        threads[i] = (BaselineThread){.tid = baseline->threads[i].tid, .comm = to};
        to = baseline_put(to, baseline->threads[i].comm, strlen(baseline->threads[i].comm) + 1);
    }
    for (size_t i = 0; i < copy->n_maps; i++) {
        maps[i] = baseline->maps[i];
        maps[i].filename.data = (const uint8_t *)to;
        to = baseline_put(to, baseline->maps[i].filename.data, maps[i].filename.size);
        maps[i].build_id = (const uint8_t *)to;
        to = baseline_put(to, baseline->maps[i].build_id, maps[i].build_id_size);
    }
    copy->threads = threads;
    copy->maps = maps;
    return copy;
}
