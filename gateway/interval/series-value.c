/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "interval/series-value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "interval/series-label.h"
#include "util/buffer.h"

/*
 * The caller begins with the labels that have the most samples, so the values that are left out are
 * those with the fewest, and the same interval always keeps the same ones.
 */

typedef struct SeriesValueCount {
    char name[LABEL_NAME_MAX + 1];
    size_t n;
} SeriesValueCount;

void series_values_done(SeriesValues *values) {
    values->seen = text_set_free(values->seen);
    free(values->counts);
    hash_index_done(&values->by_name);
    values->counts = NULL;
}

static SeriesValueCount *series_values_count_of(SeriesValues *values, const char *name) {
    uint64_t key =
        hash_bytes(hash_seed(), (Bytes){.data = (const uint8_t *)name, .size = strlen(name)});
    SeriesValueCount *count;
    uint32_t number;

    for (size_t probe = 0; (number = hash_index_next(&values->by_name, key, &probe)) > 0;)
        if (strcmp(values->counts[number - 1].name, name) == 0)
            return &values->counts[number - 1];
    count = hash_index_append(&values->by_name, key, &values->counts);
    if (count)
        (void)snprintf(count->name, sizeof(count->name), "%s", name);
    return count;
}

/* 1: it is one of those that the label has; 0: it is beyond the limit; -ENOMEM. */
static int series_values_admit(SeriesValues *values, const Label *label) {
    _cleanup_(buffer_done) Buffer text = {};
    SeriesValueCount *count;
    uint32_t number;
    int r;

    buffer_append(&text, label->name, strlen(label->name) + 1);
    buffer_append(&text, label->value, strlen(label->value));
    if (buffer_error(&text) < 0)
        return -ENOMEM;
    if (text_set_find(values->seen, buffer_bytes(&text), &number))
        return 1;
    count = series_values_count_of(values, label->name);
    if (!count)
        return -ENOMEM;
    if (count->n >= values->max)
        return 0;
    r = text_set_add(values->seen, buffer_bytes(&text), &number);
    if (r < 0)
        return r;
    count->n++;
    return 1;
}

int series_values_limit(SeriesValues *values, LabelSet *labels) {
    bool has_changed = false;
    int r = values->max > 0 && !values->seen ? text_set_new(&values->seen) : 0;

    if (r < 0 || values->max == 0)
        return r;
    for (size_t i = 0; i < labels->n; i++) {
        Label *label = &labels->list[i];

        if (strcmp(label->name, LABEL_HOST) == 0 || strcmp(label->name, SERIES_LABEL_EVENT) == 0)
            continue;
        r = series_values_admit(values, label);
        if (r == 0)
            r = label_set_put(labels, label->name, SERIES_OTHER);
        else if (r == 1)
            continue;
        if (r < 0)
            return r;
        has_changed = true;
    }
    return has_changed;
}
