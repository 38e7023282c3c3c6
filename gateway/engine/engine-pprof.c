/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "encode/base64.h"
#include "encode/protobuf.h"
#include "engine/engine-format.h"
#include "engine/engine-request.h"
#include "util/text.h"

/*
 * Engines that take pprof. Pyroscope gets a protobuf message with plain profiles, which is
 * compressed as a whole because the profiles of an interval have most names in common; Parca gets
 * JSON, in which only what is compressed before is small. A file has one profile with the labels of
 * the series at its samples.
 */

enum {
    PUSH_SERIES = 1,
    SERIES_LABEL = 1,
    SERIES_SAMPLE = 2,
    LABEL_NAME = 1,
    LABEL_VALUE = 2,
    SAMPLE_PROFILE = 1,
    PARCA_LEVEL = 1, /* of gzip: a tenth larger than the default, for a third of the time */
};

static int engine_append(const void *data, size_t size, void *arg) {
    buffer_append(arg, data, size);
    return buffer_error(arg);
}

static void pyroscope_put_label(const char *name, const Buffer *value, Buffer *body) {
    size_t begun = protobuf_begin(body, SERIES_LABEL);

    protobuf_str(body, LABEL_NAME, name);
    protobuf_bytes(body, LABEL_VALUE, buffer_bytes(value));
    protobuf_end(body, begun);
}

static int pyroscope_put_labels(const EngineRequest *request, const Series *series, Buffer *body) {
    _cleanup_(buffer_done) Buffer value = {};

    engine_series_name(request, series, &value);
    pyroscope_put_label("__name__", &value, body);
    for (size_t i = 0; i < series->labels.n; i++) {
        const Label *label = &series->labels.list[i];

        if (!engine_label_is_sent(label))
            continue;
        buffer_clear(&value);
        engine_label_value(label->value, &value);
        pyroscope_put_label(label->name, &value, body);
        if (buffer_error(&value))
            return -ENOMEM;
    }
    return buffer_error(&value);
}

static int pyroscope_put(const EngineRequest *request, size_t series, const PprofPart *parts,
                         size_t n_parts, void *userdata, Buffer *body) {
    size_t begun = protobuf_begin(body, PUSH_SERIES), sample, profile;
    int r = pyroscope_put_labels(request, &request->input->series->items[series], body);

    for (size_t i = 0; i < n_parts && r == 0; i++) {
        sample = protobuf_begin(body, SERIES_SAMPLE);
        profile = protobuf_begin(body, SAMPLE_PROFILE);
        r = pprof_write(userdata, &parts[i], engine_append, body);
        protobuf_end(body, profile);
        protobuf_end(body, sample);
    }
    protobuf_end(body, begun);
    return r;
}

int pyroscope_encode(const EngineInput *input, Buffer *body, size_t *ret_next) {
    _cleanup_(engine_request_done) EngineRequest request = {};
    _cleanup_(pprof_freep) Pprof *pprof = NULL;
    int r = engine_request_init(&request, input);

    request.export.level = EXPORT_PLAIN;
    if (r == 0)
        r = pprof_new(&request.export, &pprof);
    if (r < 0)
        return r;
    return engine_fill(&request, PYROSCOPE_STACKS_MAX, pyroscope_put, pprof, body, ret_next);
}

/* Of text in UTF-8. */
static void parca_put_string(Bytes text, Buffer *body) {
    text_putc(body, '"');
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '"' || text.data[i] == '\\')
            text_putc(body, '\\');
        text_putc(body, (char)text.data[i]);
    }
    text_putc(body, '"');
}

static void parca_put_label(const char *name, const Buffer *value, Buffer *body) {
    text_puts(body, "{\"name\":\"");
    text_puts(body, name);
    text_puts(body, "\",\"value\":");
    parca_put_string(buffer_bytes(value), body);
    text_putc(body, '}');
}

static int parca_put_labels(const EngineRequest *request, const Series *series, Buffer *body) {
    _cleanup_(buffer_done) Buffer value = {};

    engine_series_name(request, series, &value);
    parca_put_label("__name__", &value, body);
    for (size_t i = 0; i < series->labels.n; i++) {
        const Label *label = &series->labels.list[i];

        if (!engine_label_is_sent(label))
            continue;
        buffer_clear(&value);
        engine_label_value(label->value, &value);
        text_putc(body, ',');
        parca_put_label(label->name, &value, body);
        if (buffer_error(&value))
            return -ENOMEM;
    }
    return buffer_error(&value);
}

static int parca_put(const EngineRequest *request, size_t series, const PprofPart *parts,
                     size_t n_parts, void *userdata, Buffer *body) {
    _cleanup_(buffer_done) Buffer profile = {};
    int r;

    text_puts(body, body->size > 0 ? ",{\"labels\":{\"labels\":["
                                   : "{\"series\":[{\"labels\":{\"labels\":[");
    r = parca_put_labels(request, &request->input->series->items[series], body);
    text_puts(body, "]},\"samples\":[");
    for (size_t i = 0; i < n_parts && r == 0; i++) {
        buffer_clear(&profile);
        r = pprof_write(userdata, &parts[i], engine_append, &profile);
        text_puts(body, i > 0 ? ",{\"rawProfile\":\"" : "{\"rawProfile\":\"");
        base64_encode(body, buffer_bytes(&profile));
        text_puts(body, "\"}");
    }
    text_puts(body, "]}");
    return r < 0 ? r : buffer_error(body);
}

int parca_encode(const EngineInput *input, Buffer *body, size_t *ret_next) {
    _cleanup_(engine_request_done) EngineRequest request = {};
    _cleanup_(pprof_freep) Pprof *pprof = NULL;
    int r = engine_request_init(&request, input);

    request.export.level = PARCA_LEVEL;
    if (r == 0)
        r = pprof_new(&request.export, &pprof);
    if (r == 0)
        r = engine_fill(&request, 0, parca_put, pprof, body, ret_next);
    if (r == 0 && body->size > 0)
        text_puts(body, "]}");
    return r < 0 ? r : buffer_error(body);
}

/* The labels of all series, which borrow their texts. */
static ExportLabels *file_labels(const SeriesList *series, ExportLabel **ret_list) {
    _cleanup_free_ ExportLabels *labels = calloc(series->n + 1, sizeof(*labels));
    ExportLabel *list = calloc(series->n * LABELS_MAX + 1, sizeof(*list)), *next = list;

    *ret_list = list;
    if (!labels || !list)
        return NULL;
    for (size_t i = 0; i < series->n; i++) {
        labels[i].list = next;
        for (size_t k = 0; k < series->items[i].labels.n; k++) {
            const Label *label = &series->items[i].labels.list[k];

            if (engine_label_is_sent(label))
                *next++ = (ExportLabel){.name = label->name, .value = label->value};
        }
        labels[i].n = (size_t)(next - labels[i].list);
    }
    return TAKE_PTR(labels);
}

int file_encode(const EngineInput *input, Buffer *body, size_t *ret_next) {
    _cleanup_(engine_request_done) EngineRequest request = {};
    _cleanup_(pprof_freep) Pprof *pprof = NULL;
    _cleanup_free_ ExportLabel *list = NULL;
    _cleanup_free_ ExportLabels *labels = file_labels(input->series, &list);
    int r = labels ? engine_request_init(&request, input) : -ENOMEM;

    request.export.labels_of_parts = labels;
    if (r == 0)
        r = pprof_new(&request.export, &pprof);
    if (r == 0 && request.cells.n > 0)
        r = pprof_write(pprof,
                        &(PprofPart){.cells = request.cells.items,
                                     .n = request.cells.n,
                                     .event = PROFILE_NONE,
                                     .since_ns = request.export.since_ns,
                                     .until_ns = request.export.until_ns},
                        engine_append, body);
    if (r == 0)
        *ret_next = input->series->n;
    return r < 0 ? r : buffer_error(body);
}
