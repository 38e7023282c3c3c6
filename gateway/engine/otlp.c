/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "encode/protobuf.h"
#include "engine/engine-format.h"
#include "engine/engine-request.h"
#include "engine/otlp-dictionary.h"
#include "util/text.h"

/*
 * Profiles of OpenTelemetry, in the messages of OTLP 1.10. Each series is a profile. Those whose
 * labels differ only by thread and event belong to one resource, and its scopes are named like the
 * series of other engines, as Parca and others name profiles by their scope.
 *
 * Profiles are written one after the other until the request is full, and then put together by
 * resource. If one did not fit, its entries are in the dictionary already, so all is written again
 * without it.
 */

enum {
    DATA_RESOURCE = 1,
    DATA_DICTIONARY = 2,
    RESOURCE_RESOURCE = 1,
    RESOURCE_SCOPE = 2,
    RESOURCE_ATTRIBUTE = 1,
    ATTRIBUTE_KEY = 1,
    ATTRIBUTE_VALUE = 2,
    VALUE_TEXT = 1,
    SCOPE_SCOPE = 1,
    SCOPE_PROFILE = 2,
    SCOPE_NAME = 1,
    PROFILE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_TIME_UNIX = 3,
    PROFILE_DURATION = 4,
    PROFILE_PERIOD_TYPE = 5,
    PROFILE_PERIOD = 6,
    TYPE_TYPE = 1,
    TYPE_UNIT = 2,
    SAMPLE_STACK = 1,
    SAMPLE_ATTRIBUTES = 2,
    SAMPLE_VALUES = 4,
    LABEL_EXTRA = 48,   /* bytes of the messages around a label and its key, at most */
    SERIES_EXTRA = 128, /* the same for a resource, a scope and its name */
    OTLP_AGAIN = 1,
};

/* Attributes of a resource that have a name in OpenTelemetry's conventions; others keep theirs. */
static const struct {
    const char *label, *attribute;
} otlp_attributes[] = {
    {LABEL_HOST, "host.name"},           {"cgroup", "process.linux.cgroup"},
    {"container", "container.id"},       {"container_name", "k8s.container.name"},
    {"namespace", "k8s.namespace.name"}, {"pod", "k8s.pod.uid"},
    {"pod_name", "k8s.pod.name"},        {"runtime", "container.runtime"},
    {"service_name", "service.name"},    {"unit", "systemd.unit.name"},
};

typedef struct OtlpSeries {
    const Series *series;
    size_t begin, end; /* in `profiles` */
    size_t name;       /* of its scope, in `names` */
} OtlpSeries;

typedef struct Otlp {
    EngineRequest request;
    OtlpDictionary dictionary;
    ExportScale scale;
    Buffer profiles; /* messages with their keys */
    Buffer names;    /* each with a NUL */
    OtlpSeries *series;
    size_t n_series;
    size_t labels_size; /* at most, of resources and scopes */
    uint64_t folded;    /* samples */
} Otlp;

/* What one attempt to write a request may hold. */
typedef struct OtlpBounds {
    size_t end;  /* of the series */
    size_t keep; /* samples of the first one */
} OtlpBounds;

static void otlp_done(Otlp *otlp) {
    engine_request_done(&otlp->request);
    otlp_dictionary_done(&otlp->dictionary);
    buffer_done(&otlp->profiles);
    buffer_done(&otlp->names);
    free(otlp->series);
}

static void otlp_put_type(Otlp *otlp, uint32_t field, Bytes type, const char *unit) {
    uint32_t type_string = otlp_string(&otlp->dictionary, type);
    uint32_t unit_string = otlp_string(
        &otlp->dictionary, (Bytes){.data = (const uint8_t *)unit, .size = strlen(unit)});
    size_t begun = protobuf_begin(&otlp->profiles, field);

    protobuf_u64(&otlp->profiles, TYPE_TYPE, type_string);
    protobuf_u64(&otlp->profiles, TYPE_UNIT, unit_string);
    protobuf_end(&otlp->profiles, begun);
}

/* Receivers know CPU time as a count of samples with a period in nanoseconds. Other events have
 * periods that differ, so their values are sums of these. */
static void otlp_put_types(Otlp *otlp, const ProfileEvent *event, bool is_time) {
    _cleanup_(buffer_done) Buffer name = {};
    Bytes type;

    if (is_time)
        text_puts(&name, "cpu");
    else if (event)
        export_event_name(otlp->request.export.profile, event, &name);
    if (buffer_error(&name))
        otlp->dictionary.error = -ENOMEM;
    type = buffer_bytes(&name);
    otlp_put_type(otlp, PROFILE_TYPE,
                  is_time ? (Bytes){.data = (const uint8_t *)"samples", .size = 7} : type, "count");
    otlp_put_type(otlp, PROFILE_PERIOD_TYPE, type, is_time ? "nanoseconds" : "count");
    protobuf_u64(&otlp->profiles, PROFILE_PERIOD, event ? export_period(event) : 0);
}

static void otlp_put_sample(Otlp *otlp, uint32_t stack, const uint32_t *attributes,
                            size_t n_attributes, uint64_t value) {
    size_t begun = protobuf_begin(&otlp->profiles, PROFILE_SAMPLE), packed;

    protobuf_u64(&otlp->profiles, SAMPLE_STACK, stack);
    if (n_attributes > 0) {
        packed = protobuf_begin(&otlp->profiles, SAMPLE_ATTRIBUTES);
        for (size_t i = 0; i < n_attributes; i++)
            protobuf_varint(&otlp->profiles, attributes[i]);
        protobuf_end(&otlp->profiles, packed);
    }
    packed = protobuf_begin(&otlp->profiles, SAMPLE_VALUES);
    protobuf_varint(&otlp->profiles, export_scale(&otlp->scale, value));
    protobuf_end(&otlp->profiles, packed);
    protobuf_end(&otlp->profiles, begun);
}

/* `comm`: the attribute for the name of the thread, or 0. */
static void otlp_put_cell(Otlp *otlp, const ExportCell *item, uint32_t comm, bool is_time) {
    const ProfileCell *cell = export_cell(&otlp->request.export, item);
    uint32_t pid = export_cell_label(&otlp->request.export, item)->values[PROFILE_PID];
    uint32_t attributes[2];
    size_t n = 0;

    if (comm > 0)
        attributes[n++] = comm;
    if (pid != PROFILE_NONE)
        attributes[n++] = otlp_number_attribute(&otlp->dictionary, "process.pid", pid);
    otlp_put_sample(otlp, otlp_stack(&otlp->dictionary, cell->stack), attributes, n,
                    is_time ? cell->samples : cell->period);
}

/* The name of the series' threads, if it is one of its labels. */
static uint32_t otlp_comm(Otlp *otlp, const Series *series) {
    const char *comm = label_set_get(&series->labels, "comm");
    _cleanup_(buffer_done) Buffer value = {};

    if (!comm)
        return 0;
    engine_label_value(comm, &value);
    if (buffer_error(&value))
        otlp->dictionary.error = -ENOMEM;
    return otlp_text_attribute(&otlp->dictionary, "thread.name",
                               otlp_plain_string(&otlp->dictionary, buffer_bytes(&value)));
}

static void otlp_put_profile(Otlp *otlp, const Series *series, const PprofPart *part) {
    const Profile *profile = otlp->request.export.profile;
    const ProfileEvent *event =
        series->event < profile->n_events ? &profile->events[series->event] : NULL;
    bool is_time = !event || event->is_time;
    uint32_t comm = otlp_comm(otlp, series);
    size_t begun = protobuf_begin(&otlp->profiles, SCOPE_PROFILE);

    otlp_put_types(otlp, event, is_time);
    protobuf_fixed64(&otlp->profiles, PROFILE_TIME_UNIX, part->since_ns);
    protobuf_u64(&otlp->profiles, PROFILE_DURATION, part->until_ns - part->since_ns);
    for (size_t i = 0; i < part->n; i++)
        otlp_put_cell(otlp, &part->cells[i], comm, is_time);
    if (part->other_samples > 0)
        otlp_put_sample(otlp, otlp_other_stack(&otlp->dictionary), &comm, comm > 0,
                        is_time ? part->other_samples : part->other_period);
    protobuf_end(&otlp->profiles, begun);
}

/* An escape makes four bytes of one. */
static size_t otlp_labels_size(const Series *series) {
    size_t size = SERIES_EXTRA;

    for (size_t i = 0; i < series->labels.n; i++)
        size += strlen(series->labels.list[i].name) + LABEL_EXTRA +
                4 * strlen(series->labels.list[i].value);
    return size;
}

static int otlp_put_series(Otlp *otlp, size_t number, size_t keep) {
    const Series *series = &otlp->request.input->series->items[number];
    OtlpSeries *item = &otlp->series[otlp->n_series];
    PprofPart part[ENGINE_PARTS_MAX];
    size_t n = engine_parts(&otlp->request, number, 0, keep, part);

    if (n == 0)
        return 0;
    *item = (OtlpSeries){.series = series, .begin = otlp->profiles.size, .name = otlp->names.size};
    engine_series_name(&otlp->request, series, &otlp->names);
    text_putc(&otlp->names, '\0');
    otlp_put_profile(otlp, series, &part[0]);
    item->end = otlp->profiles.size;
    otlp->n_series++;
    otlp->labels_size += otlp_labels_size(series);
    otlp->folded += engine_folded(part, n);
    if (buffer_error(&otlp->names) || buffer_error(&otlp->profiles))
        return -ENOMEM;
    return otlp->dictionary.error;
}

static size_t otlp_size(const Otlp *otlp) {
    return otlp_dictionary_size(&otlp->dictionary) + otlp->profiles.size + otlp->labels_size;
}

/* Whether a label is of the thread and not of the resource. */
static bool otlp_is_apart(const Label *label) {
    return !engine_label_is_sent(label) || strcmp(label->name, "comm") == 0 ||
           strcmp(label->name, "event") == 0;
}

/* The next label from *at on that is of the resource, or NULL. */
static const Label *otlp_next_label(const LabelSet *set, size_t *at) {
    while (*at < set->n) {
        const Label *label = &set->list[(*at)++];

        if (!otlp_is_apart(label))
            return label;
    }
    return NULL;
}

static int otlp_compare_resources(const Series *x, const Series *y) {
    size_t i = 0, k = 0;

    for (;;) {
        const Label *a = otlp_next_label(&x->labels, &i), *b = otlp_next_label(&y->labels, &k);
        int order;

        if (!a || !b)
            return !!a - !!b;
        order = strcmp(a->name, b->name) ?: strcmp(a->value, b->value);
        if (order != 0)
            return order;
    }
}

static const char *otlp_scope(const Otlp *otlp, const OtlpSeries *series) {
    return (const char *)otlp->names.data + series->name;
}

static int otlp_compare(const void *a, const void *b, void *arg) {
    const OtlpSeries *x = a, *y = b;

    return otlp_compare_resources(x->series, y->series)
               ?: strcmp(otlp_scope(arg, x), otlp_scope(arg, y))
               ?: (x->begin > y->begin) - (x->begin < y->begin);
}

static const char *otlp_attribute_name(const char *label) {
    for (size_t i = 0; i < ARRAY_SIZE(otlp_attributes); i++)
        if (strcmp(otlp_attributes[i].label, label) == 0)
            return otlp_attributes[i].attribute;
    return label;
}

static int otlp_put_resource(const Series *series, Buffer *out) {
    size_t resource = protobuf_begin(out, RESOURCE_RESOURCE), attribute, text, at = 0;
    _cleanup_(buffer_done) Buffer value = {};
    const Label *label;

    while ((label = otlp_next_label(&series->labels, &at))) {
        buffer_clear(&value);
        engine_label_value(label->value, &value);
        attribute = protobuf_begin(out, RESOURCE_ATTRIBUTE);
        protobuf_str(out, ATTRIBUTE_KEY, otlp_attribute_name(label->name));
        text = protobuf_begin(out, ATTRIBUTE_VALUE);
        protobuf_bytes_always(out, VALUE_TEXT, buffer_bytes(&value));
        protobuf_end(out, text);
        protobuf_end(out, attribute);
        if (buffer_error(&value))
            return -ENOMEM;
    }
    protobuf_end(out, resource);
    return 0;
}

/* One scope with the profiles of the series from `first` on; returns the next one. */
static size_t otlp_put_scope(const Otlp *otlp, size_t first, Buffer *out) {
    const char *name = otlp_scope(otlp, &otlp->series[first]);
    const Series *resource = otlp->series[first].series;
    size_t begun = protobuf_begin(out, RESOURCE_SCOPE), i = first;
    size_t scope = protobuf_begin(out, SCOPE_SCOPE);

    protobuf_str(out, SCOPE_NAME, name);
    protobuf_end(out, scope);
    for (; i < otlp->n_series && strcmp(otlp_scope(otlp, &otlp->series[i]), name) == 0 &&
           otlp_compare_resources(otlp->series[i].series, resource) == 0;
         i++)
        buffer_append(out, otlp->profiles.data + otlp->series[i].begin,
                      otlp->series[i].end - otlp->series[i].begin);
    protobuf_end(out, begun);
    return i;
}

static int otlp_assemble(Otlp *otlp, Buffer *out) {
    size_t begun, i = 0, first;
    int r = 0;

    if (otlp->n_series == 0)
        return 0;
    qsort_r(otlp->series, otlp->n_series, sizeof(*otlp->series), otlp_compare, otlp);
    while (i < otlp->n_series && r == 0) {
        first = i;
        begun = protobuf_begin(out, DATA_RESOURCE);
        r = otlp_put_resource(otlp->series[first].series, out);
        while (i < otlp->n_series &&
               otlp_compare_resources(otlp->series[i].series, otlp->series[first].series) == 0)
            i = otlp_put_scope(otlp, i, out);
        protobuf_end(out, begun);
    }
    begun = protobuf_begin(out, DATA_DICTIONARY);
    otlp_dictionary_write(&otlp->dictionary, out);
    protobuf_end(out, begun);
    return r < 0 ? r : buffer_error(out);
}

/* The next bounds after series `number` was too much; false: it cannot be less. */
static bool otlp_shrink(const Otlp *otlp, size_t number, OtlpBounds *bounds) {
    size_t keep = MIN(bounds->keep, engine_series_samples(&otlp->request, number));

    if (number > otlp->request.input->first) {
        bounds->end = number;
        return true;
    }
    bounds->keep = engine_shrink(keep, otlp_size(otlp), otlp->request.input->max_bytes);
    return keep > ENGINE_STACKS_MIN;
}

/* OTLP_AGAIN: the request became too large, and the bounds are narrower now. */
static int otlp_try(const EngineInput *input, OtlpBounds *bounds, Buffer *body) {
    size_t max_bytes = input->max_bytes ?: SIZE_MAX, first = input->first;
    _cleanup_(otlp_done) Otlp otlp = {.scale = {.factor = input->weight}};
    int r = engine_request_init(&otlp.request, input);

    if (r == 0)
        r = otlp_dictionary_init(&otlp.dictionary, &otlp.request.export);
    otlp.series = calloc(input->series->n + 1, sizeof(*otlp.series));
    if (r == 0 && !otlp.series)
        r = -ENOMEM;
    for (size_t i = first; i < bounds->end && r == 0; i++) {
        r = otlp_put_series(&otlp, i, i == first ? bounds->keep : SIZE_MAX);
        if (r == 0 && otlp_size(&otlp) > max_bytes && otlp_shrink(&otlp, i, bounds))
            return OTLP_AGAIN;
    }
    if (r == 0)
        r = otlp_assemble(&otlp, body);
    if (r == 0 && input->folded)
        *input->folded += otlp.folded;
    return r;
}

int otlp_encode(const EngineInput *input, Buffer *body, size_t *ret_next) {
    OtlpBounds bounds = {.end = input->series->n, .keep = SIZE_MAX};
    int r;

    do
        r = otlp_try(input, &bounds, body);
    while (r == OTLP_AGAIN);
    if (r == 0)
        *ret_next = bounds.end;
    return r;
}
