/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "interval/series-value.h"

#include <errno.h>
#include <string.h>

#include "interval/series-label.h"
#include "util/array.h"
#include "util/buffer.h"

/* The same interval always keeps the same values: those with equal samples are in the order of
 * their texts. */

void series_values_done(SeriesValues *values) {
    values->texts = text_set_free(values->texts);
    free(values->items);
    *values = (SeriesValues){};
}

static bool series_values_are_limited(const Label *label) {
    return strcmp(label->name, LABEL_HOST) != 0 && strcmp(label->name, SERIES_LABEL_EVENT) != 0;
}

static int series_values_print(const Label *label, Buffer *text) {
    buffer_clear(text);
    buffer_append(text, label->name, strlen(label->name) + 1);
    buffer_append(text, label->value, strlen(label->value));
    return buffer_error(text);
}

static int series_values_add_one(SeriesValues *values, Bytes text, uint64_t samples) {
    uint32_t number;
    int r = text_set_add(values->texts, text, &number);

    while (r == 0 && values->n <= number)
        r = array_grow(&values->items, &values->n) ? 0 : -ENOMEM;
    if (r == 0)
        values->items[number].samples += samples;
    return r;
}

int series_values_add(SeriesValues *values, const LabelSet *labels, uint64_t samples) {
    _cleanup_(buffer_done) Buffer text = {};
    int r = values->texts ? 0 : text_set_new(&values->texts);

    for (size_t i = 0; r == 0 && i < labels->n; i++) {
        if (!series_values_are_limited(&labels->list[i]))
            continue;
        r = series_values_print(&labels->list[i], &text);
        if (r == 0)
            r = series_values_add_one(values, buffer_bytes(&text), samples);
    }
    return r;
}

/* By label, then those with the most samples first. The name ends in a NUL. */
static int series_values_compare(const void *a, const void *b, void *arg) {
    const SeriesValues *values = arg;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    Bytes x = text_set_get(values->texts, i), y = text_set_get(values->texts, k);
    int order = strcmp((const char *)x.data, (const char *)y.data);

    if (order == 0)
        order = (values->items[i].samples < values->items[k].samples) -
                (values->items[i].samples > values->items[k].samples);
    if (order == 0)
        order = memcmp(x.data, y.data, MIN(x.size, y.size));
    return order != 0 ? order : (x.size > y.size) - (x.size < y.size);
}

int series_values_choose(SeriesValues *values, size_t max) {
    _cleanup_free_ uint32_t *order = calloc(values->n + 1, sizeof(*order));
    const char *name = NULL;
    size_t n = 0;

    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < values->n; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, values->n, sizeof(*order), series_values_compare, values);
    for (size_t i = 0; i < values->n; i++) {
        const char *its = (const char *)text_set_get(values->texts, order[i]).data;

        n = name && strcmp(name, its) == 0 ? n + 1 : 0;
        name = its;
        values->items[order[i]].is_kept = n < max;
    }
    return 0;
}

int series_values_limit(const SeriesValues *values, LabelSet *labels) {
    _cleanup_(buffer_done) Buffer text = {};
    bool has_changed = false;
    uint32_t number;
    int r;

    for (size_t i = 0; i < labels->n; i++) {
        Label *label = &labels->list[i];

        if (!series_values_are_limited(label))
            continue;
        r = series_values_print(label, &text);
        if (r < 0)
            return r;
        if (text_set_find(values->texts, buffer_bytes(&text), &number) &&
            values->items[number].is_kept)
            continue;
        r = label_set_put(labels, label->name, SERIES_OTHER);
        if (r < 0)
            return r;
        has_changed = true;
    }
    return has_changed;
}
