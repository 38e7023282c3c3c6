/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "encode/protobuf.h"
#include "engine/engine-format.h"
#include "engine/engine-request.h"

/*
 * The message PushRequest of Pyroscope. Its profiles are plain, since the whole request is
 * compressed and the profiles of an interval have most names in common.
 */

enum {
    PUSH_SERIES = 1,
    SERIES_LABEL = 1,
    SERIES_SAMPLE = 2,
    LABEL_NAME = 1,
    LABEL_VALUE = 2,
    SAMPLE_PROFILE = 1,
};

static void pyroscope_put_label(const char *name, Bytes value, Buffer *body) {
    size_t begun = protobuf_begin(body, SERIES_LABEL);

    protobuf_str(body, LABEL_NAME, name);
    protobuf_bytes(body, LABEL_VALUE, value);
    protobuf_end(body, begun);
}

static int pyroscope_put(const EngineRequest *request, size_t series, const PprofPart *parts,
                         size_t n_parts, void *userdata, Buffer *body) {
    size_t begun = protobuf_begin(body, PUSH_SERIES), sample, profile;
    int r = engine_put_labels(request, &request->input->series->items[series], pyroscope_put_label,
                              body);

    for (size_t i = 0; i < n_parts && r == 0; i++) {
        sample = protobuf_begin(body, SERIES_SAMPLE);
        profile = protobuf_begin(body, SAMPLE_PROFILE);
        r = pprof_write(userdata, &parts[i], engine_sink, body);
        protobuf_end(body, profile);
        protobuf_end(body, sample);
    }
    protobuf_end(body, begun);
    return r;
}

int pyroscope_encode(const EngineInput *input, Buffer *body, size_t *ret_next) {
    _cleanup_(engine_request_done) EngineRequest request = {};
    _cleanup_(pprof_freep) Pprof *pprof = NULL;
    int r = engine_request_init_pprof(&request, input, &pprof);

    return r < 0
               ? r
               : engine_fill(&request, PYROSCOPE_STACKS_MAX, pyroscope_put, pprof, body, ret_next);
}
