/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "encode/base64.h"
#include "encode/gzip-pack.h"
#include "engine/engine-format.h"
#include "engine/engine-request.h"
#include "util/text.h"

/*
 * The request WriteRaw of Parca as JSON. It takes no Content-Encoding, so each profile is
 * compressed by itself.
 */

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

static void parca_put_label(const char *name, Bytes value, Buffer *body) {
    text_puts(body, strcmp(name, "__name__") == 0 ? "{\"name\":\"" : ",{\"name\":\"");
    text_puts(body, name);
    text_puts(body, "\",\"value\":");
    parca_put_string(value, body);
    text_putc(body, '}');
}

static int parca_put(const EngineRequest *request, size_t series, const PprofPart *parts,
                     size_t n_parts, void *userdata, Buffer *body) {
    _cleanup_(buffer_done) Buffer profile = {}, packed = {};
    int r;

    text_puts(body, body->size > 0 ? ",{\"labels\":{\"labels\":["
                                   : "{\"series\":[{\"labels\":{\"labels\":[");
    r = engine_put_labels(request, &request->input->series->items[series], parca_put_label, body);
    text_puts(body, "]},\"samples\":[");
    for (size_t i = 0; i < n_parts && r == 0; i++) {
        buffer_clear(&profile);
        buffer_clear(&packed);
        r = pprof_write(userdata, &parts[i], engine_sink, &profile);
        if (r == 0)
            r = gzip_pack(buffer_bytes(&profile), &packed);
        text_puts(body, i > 0 ? ",{\"rawProfile\":\"" : "{\"rawProfile\":\"");
        base64_encode(body, buffer_bytes(&packed));
        text_puts(body, "\"}");
    }
    text_puts(body, "]}");
    return r < 0 ? r : buffer_error(body);
}

int parca_encode(const EngineInput *input, Buffer *body, size_t *ret_next) {
    _cleanup_(engine_request_done) EngineRequest request = {};
    _cleanup_(pprof_freep) Pprof *pprof = NULL;
    int r = engine_request_init_pprof(&request, input, &pprof);

    if (r == 0)
        r = engine_fill(&request, 0, parca_put, pprof, body, ret_next);
    if (r == 0 && body->size > 0)
        text_puts(body, "]}");
    return r < 0 ? r : buffer_error(body);
}
