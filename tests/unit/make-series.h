/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An interval of a profile that was made by hand, divided into series by hand. */

#include "engine/engine.h"
#include "make-profile.h"

typedef struct MadeSeries {
    Interval interval;
    SeriesList list;
} MadeSeries;

enum { MADE_SECONDS = 1800000000 };

/* The interval of ten seconds; nothing is copied, and no label has a series yet. */
static inline MadeSeries make_series_list(const MadeProfile *made) {
    MadeSeries series = {.interval = {.references = 1,
                                      .since_ns = MADE_SECONDS * 1000000000ULL,
                                      .until_ns = MADE_SECONDS * 1000000000ULL + 10000000000,
                                      .profile = made->profile,
                                      .names = made->names}};

    series.list.of_label = calloc(made->profile->n_labels + 1, sizeof(uint32_t));
    if (!series.list.of_label)
        abort();
    memset(series.list.of_label, 0xff, made->profile->n_labels * sizeof(uint32_t));
    return series;
}

/* The next series: of labels first to last, with its service and host. */
static inline Series *make_series(MadeSeries *made, const char *service, uint32_t event,
                                  uint32_t first, uint32_t last) {
    Series *series = array_grow(&made->list.items, &made->list.n);

    if (!series)
        abort();
    series->event = event;
    made_ok(label_set_put(&series->labels, "host", "web1"));
    made_ok(label_set_put(&series->labels, "service_name", service));
    for (uint32_t i = first; i <= last; i++)
        made->list.of_label[i] = (uint32_t)made->list.n - 1;
    return series;
}

static inline void made_series_done(MadeSeries *made) {
    for (size_t i = 0; i < made->list.n; i++)
        label_set_done(&made->list.items[i].labels);
    free(made->list.items);
    free(made->list.of_label);
}

/* Writes one request. */
static inline size_t encode(const char *engine, const MadeSeries *made, EngineInput input,
                            Buffer *ret) {
    size_t next = SIZE_MAX;

    input.interval = &made->interval;
    input.series = &made->list;
    if (input.weight == 0)
        input.weight = 1;
    made_ok(engine_by_name(engine)->encode(&input, ret, &next));
    return next;
}
