/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "interval/series-set.h"

#include <errno.h>
#include <string.h>

/* An array of series and an index by the bytes of their labels. */

void series_done(Series *series) {
    label_set_done(&series->labels);
}

void series_set_done(SeriesSet *set) {
    for (size_t i = 0; i < set->index.n; i++)
        series_done(&set->items[i]);
    free(set->items);
    hash_index_done(&set->index);
    set->items = NULL;
}

static uint64_t series_set_hash(const LabelSet *labels, uint32_t event) {
    uint64_t h = hash_u64(hash_seed(), event);

    for (size_t i = 0; i < labels->n; i++) {
        const char *const texts[] = {labels->list[i].name, labels->list[i].value};

        for (size_t k = 0; k < ARRAY_SIZE(texts); k++)
            h = hash_bytes(h, (Bytes){.data = (const uint8_t *)texts[k], .size = strlen(texts[k])});
    }
    return h;
}

static int series_compare_labels(const LabelSet *a, const LabelSet *b) {
    int order = 0;

    for (size_t i = 0; i < a->n && i < b->n && order == 0; i++) {
        order = strcmp(a->list[i].name, b->list[i].name);
        if (order == 0)
            order = strcmp(a->list[i].value, b->list[i].value);
    }
    return order != 0 ? order : (a->n > b->n) - (a->n < b->n);
}

int series_compare(const Series *a, const Series *b) {
    int order = series_compare_labels(&a->labels, &b->labels);

    return order != 0 ? order : (a->event > b->event) - (a->event < b->event);
}

int series_set_get(SeriesSet *set, LabelSet *labels, uint32_t event, size_t max, uint32_t *ret) {
    Series wanted = {.labels = *labels, .event = event}, *row;
    uint64_t key = series_set_hash(labels, event);
    uint32_t number;

    *labels = (LabelSet){};
    for (size_t probe = 0; (number = hash_index_next(&set->index, key, &probe)) > 0;)
        if (series_compare(&set->items[number - 1], &wanted) == 0) {
            series_done(&wanted);
            *ret = number - 1;
            return 0;
        }
    row = set->index.n < max ? hash_index_append(&set->index, key, &set->items) : NULL;
    if (!row) {
        series_done(&wanted);
        return set->index.n < max ? -ENOMEM : -ENOSPC;
    }
    *row = wanted;
    *ret = (uint32_t)set->index.n - 1;
    return 0;
}
