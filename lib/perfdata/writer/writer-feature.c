/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "perfdata/writer/encode.h"
#include "perfdata/writer/writer-internal.h"
#include "util/macro.h"

/*
 * The features of a recording that is being written: their bodies are kept until a file ends or a
 * pipe can take them. There are three kinds: those that the caller sets, those that only the writer
 * knows (how it compresses, that it is a directory), and those from the tally of the records where
 * the caller set none.
 */

int pd_writer_keep_feature(PdWriter *w, unsigned bit, Bytes body) {
    PdFeatureBody *f = &w->features[bit];
    uint8_t *copy = malloc(body.size > 0 ? body.size : 1);

    if (!copy)
        return -ENOMEM;
    if (body.size > 0)
        memcpy(copy, body.data, body.size);
    free(f->data);
    *f = (PdFeatureBody){.set = true, .data = copy, .size = body.size};
    return 0;
}

int pd_writer_set_feature(PdWriter *w, unsigned bit, Bytes body) {
    bool pipe = w->options.layout == PD_LAYOUT_PIPE;
    int r;

    assert(!w->finished);
    if (bit == 0 || bit >= PD_FEATURE_BITS || bit == PD_FEATURE_COMPRESSED ||
        bit == PD_FEATURE_DIR_FORMAT)
        return -EINVAL;
    if (pipe && !pd_pipe_takes_feature(w, bit, body)) {
        w->features[bit].left_out = true;
        return PD_WRITER_LEFT_OUT;
    }
    r = pd_writer_keep_feature(w, bit, body);
    if (r < 0)
        return r;
    return pipe && w->begun ? pd_pipe_feature(w, bit) : 0;
}

int pd_writer_set_environment(PdWriter *w, const PdEnvironment *environment) {
    int left_out = 0;

    for (unsigned bit = 1; bit < PD_FEATURE_BITS; bit++) {
        _cleanup_(buffer_done) Buffer body = {};
        int r;

        if (bit == PD_FEATURE_COMPRESSED || bit == PD_FEATURE_DIR_FORMAT)
            continue;
        r = pd_environment_write(environment, bit, &body, w->options.swap);
        if (r == -ENOENT)
            continue;
        if (r >= 0)
            r = pd_writer_set_feature(w, bit, buffer_bytes(&body));
        if (r < 0)
            return r;
        left_out = MAX(left_out, r);
    }
    return left_out;
}

bool pd_writer_left_out(const PdWriter *w, unsigned bit) {
    return bit < PD_FEATURE_BITS && w->features[bit].left_out && !w->features[bit].set;
}

/* Sets the features that only the writer knows. */
int pd_writer_keep_own_features(PdWriter *w) {
    _cleanup_(buffer_done) Buffer body = {};
    uint64_t raw = pd_writer_raw_bytes(w), stored = pd_writer_stored_bytes(w);
    int r = 0;

    if (w->options.layout == PD_LAYOUT_DIRECTORY) {
        buffer_u64(&body, 1, w->options.swap);
        r = buffer_error(&body)
                ?: pd_writer_keep_feature(w, PD_FEATURE_DIR_FORMAT, buffer_bytes(&body));
    }
    if (r < 0 || !w->compressed)
        return r;
    buffer_clear(&body);
    pd_encode_compressed(&body, (uint32_t)w->options.zstd_level,
                         stored > 0 ? (uint32_t)MIN(raw / stored, (uint64_t)UINT32_MAX) : 0,
                         PD_FRAME_RAW_MAX, w->options.swap);
    return buffer_error(&body)
               ?: pd_writer_keep_feature(w, PD_FEATURE_COMPRESSED, buffer_bytes(&body));
}

static bool writer_feature_is_ours_to_make(const PdWriter *w, unsigned bit) {
    return !w->features[bit].set || w->features[bit].made;
}

static int writer_feature_make(PdWriter *w, unsigned bit, const Buffer *body) {
    int r = buffer_error(body) ?: pd_writer_set_feature(w, bit, buffer_bytes(body));

    w->features[bit].made = r == 0;
    return r;
}

/* Sets the features from the records where the caller did not set them. */
int pd_writer_keep_tally(PdWriter *w) {
    _cleanup_(buffer_done) Buffer times = {}, build_ids = {};
    PdTallyTotals totals = pd_tally_totals(w->tally);
    int r = 0;

    if (totals.has_times && writer_feature_is_ours_to_make(w, PD_FEATURE_SAMPLE_TIME)) {
        pd_encode_sample_time(&times, totals.first_sample_time, totals.last_sample_time,
                              w->options.swap);
        r = writer_feature_make(w, PD_FEATURE_SAMPLE_TIME, &times);
    }
    if (r < 0 || totals.n_build_ids == 0 || !writer_feature_is_ours_to_make(w, PD_FEATURE_BUILD_ID))
        return r;
    pd_tally_encode_build_ids(w->tally, &build_ids, w->options.swap);
    return writer_feature_make(w, PD_FEATURE_BUILD_ID, &build_ids);
}
