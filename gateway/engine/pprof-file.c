/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "encode/gzip-pack.h"
#include "engine/engine-format.h"
#include "engine/engine-request.h"

/* One profile for any reader of pprof: all series of an interval, whose labels are at the samples.
 */

/* The labels of all series, which borrow their texts. */
static ExportLabels *pprof_labels(const SeriesList *series, ExportLabel **ret_list) {
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
    _cleanup_(buffer_done) Buffer plain = {};
    _cleanup_free_ ExportLabel *list = NULL;
    _cleanup_free_ ExportLabels *labels = pprof_labels(input->series, &list);
    int r = labels ? engine_request_init(&request, input) : -ENOMEM;

    request.export.labels_of_parts = labels;
    request.export.is_plain = true;
    if (r == 0)
        r = pprof_new(&request.export, &pprof);
    if (r == 0 && request.cells.n > 0)
        r = pprof_write(pprof,
                        &(PprofPart){.cells = request.cells.items,
                                     .n = request.cells.n,
                                     .event = PROFILE_NONE,
                                     .since_ns = request.export.since_ns,
                                     .until_ns = request.export.until_ns},
                        engine_sink, &plain);
    if (r == 0 && plain.size > 0)
        r = gzip_pack(buffer_bytes(&plain), body);
    if (r == 0)
        *ret_next = input->series->n;
    return r < 0 ? r : buffer_error(body);
}
