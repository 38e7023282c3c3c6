/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "interval/series.h"

#include <errno.h>
#include <string.h>

#include "interval/series-label.h"
#include "interval/series-set.h"
#include "interval/series-value.h"

/*
 * From the labels of a profile to series. Labels that differ in pid alone are one mixture of event,
 * comm and control group, whose labels are made, and changed by the rules, once. Mixtures with the
 * most samples come first, so what is above a limit is the rest with the fewest, and memory is
 * bounded whatever programs call themselves. Nothing depends on the order of the profile.
 */

typedef struct SeriesMixture {
    uint32_t label;  /* the first label of the profile with this event, comm and control group */
    uint32_t series; /* or SERIES_NONE */
    uint64_t samples, period;
} SeriesMixture;

typedef struct SeriesWork {
    const Interval *interval;
    const SeriesOptions *options;
    SeriesMixture *mixtures;
    HashIndex by_key;
    uint32_t *of_label; /* the mixture of each label, later its series */
    SeriesSet set;
    SeriesValues values;
    uint64_t dropped, other;
} SeriesWork;

static const ProfileKey series_keys[] = {PROFILE_EVENT, PROFILE_COMM, PROFILE_CGROUP};

void series_list_done(SeriesList *list) {
    for (size_t i = 0; i < list->n; i++)
        series_done(&list->items[i]);
    free(list->items);
    free(list->of_label);
    *list = (SeriesList){};
}

static void series_work_done(SeriesWork *work) {
    series_values_done(&work->values);
    series_set_done(&work->set);
    hash_index_done(&work->by_key);
    free(work->mixtures);
    free(work->of_label);
}

static const ProfileLabel *series_label_of(const SeriesWork *work, uint32_t number) {
    return &work->interval->profile->labels[number];
}

static bool series_keys_equal(const ProfileLabel *a, const ProfileLabel *b) {
    for (size_t i = 0; i < ARRAY_SIZE(series_keys); i++)
        if (a->values[series_keys[i]] != b->values[series_keys[i]])
            return false;
    return true;
}

static int series_find_mixture(SeriesWork *work, uint32_t label, uint32_t *ret) {
    const ProfileLabel *wanted = series_label_of(work, label);
    uint64_t key = hash_seed();
    SeriesMixture *mixture;
    uint32_t number;

    for (size_t i = 0; i < ARRAY_SIZE(series_keys); i++)
        key = hash_u64(key, wanted->values[series_keys[i]]);
    for (size_t probe = 0; (number = hash_index_next(&work->by_key, key, &probe)) > 0;)
        if (series_keys_equal(series_label_of(work, work->mixtures[number - 1].label), wanted)) {
            *ret = number - 1;
            return 0;
        }
    mixture = hash_index_append(&work->by_key, key, &work->mixtures);
    if (!mixture)
        return -ENOMEM;
    *mixture = (SeriesMixture){.label = label, .series = SERIES_NONE};
    *ret = (uint32_t)work->by_key.n - 1;
    return 0;
}

static int series_mix(SeriesWork *work) {
    const Profile *profile = work->interval->profile;
    int r = 0;

    work->of_label = calloc(profile->n_labels + 1, sizeof(*work->of_label));
    if (!work->of_label)
        return -ENOMEM;
    for (size_t i = 0; i < profile->n_labels && r == 0; i++)
        r = series_find_mixture(work, (uint32_t)i, &work->of_label[i]);
    for (size_t i = 0; i < profile->n_cells && r == 0; i++) {
        SeriesMixture *mixture = &work->mixtures[work->of_label[profile->cells[i].label]];

        mixture->samples += profile->cells[i].samples;
        mixture->period += profile->cells[i].period;
    }
    return r;
}

static int series_compare_bytes(Bytes a, Bytes b) {
    size_t n = MIN(a.size, b.size);
    int order = n > 0 ? memcmp(a.data, b.data, n) : 0;

    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static Bytes series_text(const Profile *profile, const ProfileLabel *label, ProfileKey key) {
    if (key == PROFILE_EVENT)
        return series_label_event(profile, label);
    return label->values[key] < text_set_count(profile->texts)
               ? text_set_get(profile->texts, label->values[key])
               : (Bytes){};
}

/* Mixtures with more samples come first, equal ones by their texts. */
static int series_compare_mixtures(const void *a, const void *b, void *arg) {
    const SeriesWork *work = arg;
    const SeriesMixture *x = &work->mixtures[*(const uint32_t *)a],
                        *y = &work->mixtures[*(const uint32_t *)b];
    const Profile *profile = work->interval->profile;
    int order = 0;

    if (x->samples != y->samples)
        return x->samples > y->samples ? -1 : 1;
    for (size_t i = 0; i < ARRAY_SIZE(series_keys) && order == 0; i++)
        order = series_compare_bytes(
            series_text(profile, series_label_of(work, x->label), series_keys[i]),
            series_text(profile, series_label_of(work, y->label), series_keys[i]));
    return order;
}

/* 1: the series stays; 0: a rule drops it; -ENOMEM. */
static int series_apply_rules(const SeriesWork *work, const ProfileLabel *label, LabelSet *labels) {
    int r = 1;

    for (size_t i = 0; i < work->options->n_rules && r == 1; i++) {
        r = relabel_apply(work->options->rules[i], labels);
        /* A rule whose result is no value changes nothing. */
        r = r < 0 && r != -ENOMEM ? 1 : r;
    }
    if (r == 1 && !label_set_get(labels, SERIES_LABEL_EVENT))
        r = series_label_put(labels, SERIES_LABEL_EVENT,
                             series_label_event(work->interval->profile, label))
                ?: 1;
    if (r == 1 && !label_set_get(labels, SERIES_LABEL_SERVICE)) {
        r = label_set_put(labels, SERIES_LABEL_SERVICE, "unknown");
        r = r == -ENOMEM ? r : 1;
    }
    return r;
}

/* The series for what is above a limit. */
static int series_get_other(SeriesWork *work, uint32_t event, uint32_t *ret) {
    const ProfileLabel label = {.values = {[PROFILE_EVENT] = event}};
    LabelSet labels = {};
    const char *host = work->options->host;
    int r = series_label_put(&labels, LABEL_HOST,
                             (Bytes){.data = (const uint8_t *)host, .size = strlen(host)});

    if (r == 0)
        r = label_set_put(&labels, SERIES_LABEL_SERVICE, SERIES_OTHER);
    if (r == 0)
        r = series_label_put(&labels, SERIES_LABEL_EVENT,
                             series_label_event(work->interval->profile, &label));
    if (r == 0)
        return series_set_get(&work->set, &labels, event, SIZE_MAX, ret);
    label_set_done(&labels);
    return r;
}

/* The labels of a mixture, as the rules change them. 1; 0: a rule drops it; or a negative errno.
 * Without 1 they are empty. */
static int series_make_labels(const SeriesWork *work, const SeriesMixture *mixture, LabelSet *ret) {
    const ProfileLabel *label = series_label_of(work, mixture->label);
    LabelSet labels = {};
    int r = series_label_make(work->interval, work->options->host, label, &labels);

    if (r == 0)
        r = series_apply_rules(work, label, &labels);
    if (r <= 0)
        label_set_done(&labels);
    *ret = labels;
    return r;
}

static bool series_has_many_values(const SeriesWork *work) {
    size_t max = work->options->max_values;

    return max > 0 && work->by_key.n > max;
}

/* Which values stay: no label has more of them than there are mixtures. */
static int series_choose_values(SeriesWork *work) {
    int r = 1;

    if (!series_has_many_values(work))
        return 0;
    for (size_t i = 0; i < work->by_key.n && r >= 0; i++) {
        LabelSet labels;

        r = series_make_labels(work, &work->mixtures[i], &labels);
        if (r == 1)
            r = series_values_add(&work->values, &labels, work->mixtures[i].samples);
        label_set_done(&labels);
    }
    return r < 0 ? r : series_values_choose(&work->values, work->options->max_values);
}

static int series_place(SeriesWork *work, SeriesMixture *mixture) {
    uint32_t event = series_label_of(work, mixture->label)->values[PROFILE_EVENT];
    bool has_other;
    LabelSet labels;
    Series *series;
    int r = series_make_labels(work, mixture, &labels);

    if (r <= 0) {
        work->dropped += mixture->samples;
        return r;
    }
    r = series_has_many_values(work) ? series_values_limit(&work->values, &labels) : 0;
    if (r < 0) {
        label_set_done(&labels);
        return r;
    }
    has_other = r > 0;
    r = series_set_get(&work->set, &labels, event, SERIES_MAX, &mixture->series);
    if (r == -ENOSPC) {
        has_other = true;
        r = series_get_other(work, event, &mixture->series);
    }
    if (r < 0)
        return r;
    series = &work->set.items[mixture->series];
    series->samples += mixture->samples;
    series->period += mixture->period;
    if (has_other) {
        series->other += mixture->samples;
        work->other += mixture->samples;
    }
    return 0;
}

static int series_place_all(SeriesWork *work) {
    size_t n = work->by_key.n;
    _cleanup_free_ uint32_t *order = calloc(n + 1, sizeof(*order));
    int r = 0;

    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, n, sizeof(*order), series_compare_mixtures, work);
    for (size_t i = 0; i < n && r == 0; i++)
        r = series_place(work, &work->mixtures[order[i]]);
    return r;
}

/* -- the limit and the order of series ------------------------------------------------------- */

static int series_compare_samples(const void *a, const void *b, void *arg) {
    const Series *items = arg, *x = &items[*(const uint32_t *)a], *y = &items[*(const uint32_t *)b];

    if (x->samples != y->samples)
        return x->samples > y->samples ? -1 : 1;
    return series_compare(x, y);
}

static int series_compare_order(const void *a, const void *b, void *arg) {
    const Series *items = arg;

    return series_compare(&items[*(const uint32_t *)a], &items[*(const uint32_t *)b]);
}

/* The events that have series, each of which may need one for the rest. */
static size_t series_count_events(const SeriesWork *work) {
    size_t n = 0;

    for (uint32_t event = 0; event < work->interval->profile->n_events; event++)
        for (size_t i = 0; i < work->set.index.n; i++)
            if (work->set.items[i].event == event) {
                n++;
                break;
            }
    return n;
}

/* Moves the samples of the series above the limit; to[i] is where those of series i are now. */
static int series_limit(SeriesWork *work, uint32_t *to) {
    size_t n = work->set.index.n, max = work->options->max_series, events;
    _cleanup_free_ uint32_t *order = calloc(n + 1, sizeof(*order));

    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        order[i] = to[i] = (uint32_t)i;
    if (max == 0 || n <= max)
        return 0;
    qsort_r(order, n, sizeof(*order), series_compare_samples, work->set.items);
    events = series_count_events(work);
    for (size_t i = max > events ? max - events : 0; i < n; i++) {
        uint32_t other;
        Series *from;
        int r = series_get_other(work, work->set.items[order[i]].event, &other);

        if (r < 0)
            return r;
        from = &work->set.items[order[i]];
        to[order[i]] = other;
        if (other == order[i])
            continue;
        work->other += from->samples - from->other;
        work->set.items[other].samples += from->samples;
        work->set.items[other].period += from->period;
        from->samples = from->period = 0;
    }
    return 0;
}

/* Hands the series that have something over, in order. */
static int series_finish(SeriesWork *work, uint32_t *to, SeriesList *ret) {
    size_t n = work->set.index.n, kept = 0;
    _cleanup_free_ uint32_t *order = calloc(n + 1, sizeof(*order)),
                            *place = calloc(n + 1, sizeof(*place));
    SeriesList list = {.dropped = work->dropped, .other = work->other};

    list.items = calloc(n + 1, sizeof(*list.items));
    if (!order || !place || !list.items) {
        free(list.items);
        return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++)
        if (work->set.items[i].samples > 0)
            order[kept++] = (uint32_t)i;
    qsort_r(order, kept, sizeof(*order), series_compare_order, work->set.items);
    for (size_t i = 0; i < kept; i++) {
        list.items[i] = work->set.items[order[i]];
        work->set.items[order[i]] = (Series){};
        place[order[i]] = (uint32_t)i;
    }
    list.n = kept;
    for (size_t i = 0; i < work->interval->profile->n_labels; i++) {
        const SeriesMixture *mixture = &work->mixtures[work->of_label[i]];
        bool is_empty = mixture->series == SERIES_NONE || mixture->samples == 0;

        work->of_label[i] = is_empty ? SERIES_NONE : place[to[mixture->series]];
    }
    list.of_label = TAKE_PTR(work->of_label);
    *ret = list;
    return 0;
}

int series_list_make(const Interval *interval, const SeriesOptions *options, SeriesList *ret) {
    _cleanup_(series_work_done) SeriesWork work = {.interval = interval, .options = options};
    _cleanup_free_ uint32_t *to = NULL;
    int r = series_mix(&work);

    if (r == 0)
        r = series_choose_values(&work);
    if (r == 0)
        r = series_place_all(&work);
    if (r < 0)
        return r;
    /* Room for the series of the rest, one for each event. */
    to = calloc(work.set.index.n + interval->profile->n_events + 1, sizeof(*to));
    if (!to)
        return -ENOMEM;
    r = series_limit(&work, to);
    return r < 0 ? r : series_finish(&work, to, ret);
}
