/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/merge/merge-state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/file/event-feature.h"
#include "perfdata/feature/environment.h"
#include "perfdata/tracing/tracing.h"
#include "perfdata/writer/encode.h"
#include "util/macro.h"

/*
 * The features of the result. Those that describe the host are equal in all recordings
 * (merge_compare() has checked that) and come from the first one that has them; lists are united;
 * what depends on events is made again.
 */

typedef int (*Maker)(Merge *m, unsigned bit);

static int merge_feature_set_body(Merge *m, unsigned bit, const Buffer *body) {
    int r = buffer_error(body);

    return r < 0 ? r : pd_writer_set_feature(m->sink.writer, bit, buffer_bytes(body));
}

/* 0: *ret is the body, -ENOENT: the recording has no valid one, and an invalid one was noted. */
static int merge_feature_body_of(MergeInput *in, unsigned bit, Bytes *ret) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    int r = pd_environment_new(&env);

    if (r < 0)
        return r;
    /* CPU_TOPOLOGY has an entry for each CPU counted by NRCPUS. */
    (void)sink_read_feature(in->reader, env, PD_FEATURE_NRCPUS, ret);
    r = sink_read_feature(in->reader, env, bit, ret);
    if (r == -EBADMSG && in->bad_feature.text[0] == '\0')
        pd_feature_damage(in->reader, bit, r, &in->bad_feature);
    return r == -EBADMSG ? -ENOENT : r;
}

static int merge_feature_take_first(Merge *m, unsigned bit) {
    for (size_t i = 0; i < m->n_inputs; i++) {
        Bytes body;
        int r = merge_feature_body_of(&m->inputs[i], bit, &body);

        if (r == 0)
            return pd_writer_set_feature(m->sink.writer, bit, body);
        if (r != -ENOENT)
            return r;
    }
    return 0;
}

static int merge_feature_leave_to_others(Merge *m, unsigned bit) {
    return 0;
}

/* Tracing data and build ids of a stream are available without being a feature of it. */
static bool merge_feature_any_has(const Merge *m, unsigned bit) {
    Bytes body;

    for (size_t i = 0; i < m->n_inputs; i++)
        if (pd_reader_feature(m->inputs[i].reader, bit, &body) == 0)
            return true;
    return false;
}

/* The readers have taken the names from it; one that is invalid has to be noted. */
static int merge_feature_make_event_desc(Merge *m, unsigned bit) {
    _cleanup_(buffer_done) Buffer body = {};

    for (size_t i = 0; i < m->n_inputs; i++) {
        Bytes old;
        int r = merge_feature_body_of(&m->inputs[i], bit, &old);

        if (r < 0 && r != -ENOENT)
            return r;
    }
    pd_encode_event_desc(&body, m->events, m->sink.options.swap);
    return merge_feature_set_body(m, bit, &body);
}

static int merge_feature_make_group_desc(Merge *m, unsigned bit) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(buffer_done) Buffer out = {};
    bool swap = m->sink.options.swap;
    int r = pd_environment_new(&env);

    for (size_t i = 0; r == 0 && i < m->n_inputs; i++) {
        MergeInput *in = &m->inputs[i];
        Bytes body;

        r = merge_feature_body_of(in, bit, &body);
        if (r == 0)
            r = group_desc_add(env, body, swap, in->index,
                               pd_events_count(pd_reader_events(in->reader)));
        r = r == -ENOENT || r == -EBADMSG ? 0 : r;
    }
    if (r == 0)
        r = pd_environment_write(env, bit, &out, swap);
    if (r == -ENOENT)
        return 0;
    return r < 0 ? r : merge_feature_set_body(m, bit, &out);
}

static int merge_feature_make_sample_time(Merge *m, unsigned bit) {
    uint64_t first = 0, last = 0;
    uint8_t body[16];

    for (size_t i = 0; i < m->n_inputs; i++) {
        const MergeInput *in = &m->inputs[i];

        if (!in->has_samples)
            continue;
        first = last == 0 ? in->first_sample_time : MIN(first, in->first_sample_time);
        last = MAX(last, in->last_sample_time);
    }
    store_u64(body, first, m->sink.options.swap);
    store_u64(body + 8, last, m->sink.options.swap);
    return pd_writer_set_feature(m->sink.writer, bit, (Bytes){.data = body, .size = sizeof(body)});
}

static int merge_feature_cannot_describe(const Merge *m, const MergeInput *in, int error) {
    if (error != -EEXIST && error != -EBADMSG && error != -E2BIG)
        return error;
    complain(STATUS_FAILED,
             "'%s' cannot be merged with '%s', since the tracepoints it describes %s.", in->path,
             m->inputs[0].path,
             error == -EEXIST    ? "have other fields there"
             : error == -EBADMSG ? "are damaged"
                                 : "are too many");
    return -ECANCELED;
}

static int merge_feature_make_tracing_data(Merge *m, unsigned bit) {
    _cleanup_(buffer_done) Buffer all = {};

    for (size_t i = 0; i < m->n_inputs; i++) {
        _cleanup_(buffer_done) Buffer both = {};
        Bytes body;
        int r = merge_feature_body_of(&m->inputs[i], bit, &body);

        if (r == -ENOENT)
            continue;
        if (r < 0)
            return r;
        if (all.size == 0) {
            buffer_append(&all, body.data, body.size);
            continue;
        }
        r = pd_tracing_merge(buffer_bytes(&all), body, &both);
        if (r < 0)
            return merge_feature_cannot_describe(m, &m->inputs[i], r);
        buffer_done(&all);
        all = both;
        both = (Buffer){};
    }
    return merge_feature_set_body(m, bit, &all);
}

static int merge_feature_compare_build_ids(const void *a, const void *b) {
    const PdBuildIdEntry *x = a, *y = b;
    int d = strcmp(x->filename, y->filename);

    if (d == 0)
        d = memcmp(x->build_id, y->build_id, sizeof(x->build_id));
    return d != 0 ? d : x->pid < y->pid ? -1 : x->pid > y->pid;
}

static int merge_feature_compare_bpf_progs(const void *a, const void *b) {
    const PdBpfProg *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}

static int merge_feature_compare_btfs(const void *a, const void *b) {
    const PdBtf *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}

/* clang-format off */
static const struct {
    unsigned bit;
    size_t array, n, each; /* of the list in an environment */
    int (*compare)(const void *a, const void *b);
} lists[] = {
    {PD_FEATURE_BUILD_ID,      offsetof(PdEnvironment, build_ids), offsetof(PdEnvironment, n_build_ids), sizeof(PdBuildIdEntry), merge_feature_compare_build_ids},
    {PD_FEATURE_BPF_PROG_INFO, offsetof(PdEnvironment, bpf_progs), offsetof(PdEnvironment, n_bpf_progs), sizeof(PdBpfProg),      merge_feature_compare_bpf_progs},
    {PD_FEATURE_BPF_BTF,       offsetof(PdEnvironment, btfs),      offsetof(PdEnvironment, n_btfs),      sizeof(PdBtf),          merge_feature_compare_btfs},
};
/* clang-format on */

/* Concatenates the lists of all recordings, borrowed from environments that are stored in
 * `envs`. */
static int merge_feature_gather_list(Merge *m, size_t row, PdEnvironment **envs, Buffer *ret) {
    for (size_t i = 0; i < m->n_inputs; i++) {
        MergeInput *in = &m->inputs[i];
        Bytes body;
        int r = merge_feature_body_of(in, lists[row].bit, &body);

        if (r == -ENOENT)
            continue;
        if (r == 0)
            r = pd_environment_new(&envs[i]);
        if (r == 0)
            r = pd_environment_read(envs[i], lists[row].bit, body,
                                    pd_reader_header(in->reader)->swap);
        if (r == -EBADMSG)
            continue;
        if (r < 0)
            return r;
        buffer_append(ret, *(void **)((char *)envs[i] + lists[row].array),
                      *(size_t *)((char *)envs[i] + lists[row].n) * lists[row].each);
    }
    return buffer_error(ret);
}

static void merge_feature_sort_and_thin(Buffer *list, size_t row) {
    size_t each = lists[row].each, kept = 0;

    if (list->size > 0)
        qsort(list->data, list->size / each, each, lists[row].compare);
    for (size_t i = 0; i < list->size / each; i++) {
        const uint8_t *item = list->data + i * each;

        if (kept > 0 && lists[row].compare(list->data + (kept - 1) * each, item) == 0)
            continue;
        memmove(list->data + kept * each, item, each);
        kept++;
    }
    list->size = kept * each;
}

static int merge_feature_write_list(Merge *m, size_t row, const Buffer *list) {
    _cleanup_(buffer_done) Buffer body = {};
    PdEnvironment env = {};
    int r;

    *(void **)((char *)&env + lists[row].array) = list->data;
    *(size_t *)((char *)&env + lists[row].n) = list->size / lists[row].each;
    env.has[lists[row].bit] = true;
    r = pd_environment_write(&env, lists[row].bit, &body, m->sink.options.swap);
    return r < 0 ? r : merge_feature_set_body(m, lists[row].bit, &body);
}

static int merge_feature_unite_lists(Merge *m, unsigned bit) {
    _cleanup_(buffer_done) Buffer list = {};
    _cleanup_free_ PdEnvironment **envs = calloc(m->n_inputs, sizeof(*envs));
    size_t row = 0;
    int r;

    if (!envs)
        return -ENOMEM;
    while (lists[row].bit != bit)
        row++;
    r = merge_feature_gather_list(m, row, envs, &list);
    if (r == 0) {
        merge_feature_sort_and_thin(&list, row);
        r = merge_feature_write_list(m, row, &list);
    }
    for (size_t i = 0; i < m->n_inputs; i++)
        pd_environment_free(envs[i]);
    return r;
}

static int merge_feature_read_into(MergeInput *in, unsigned bit, PdEnvironment *env) {
    Bytes body;
    int r = merge_feature_body_of(in, bit, &body);

    if (r == 0)
        r = pd_environment_read(env, bit, body, pd_reader_header(in->reader)->swap);
    return r == -EBADMSG ? -ENOENT : r;
}

/* -ENOENT: the coverage of some recording is unknown, so that of the result is too. */
static int merge_feature_read_coverages(const Merge *m, PdEnvironment **envs) {
    int r = 0;

    for (size_t i = 0; r == 0 && i < m->n_inputs; i++) {
        r = pd_environment_new(&envs[i]);
        if (r == 0)
            r = merge_feature_read_into(&m->inputs[i], PD_FEATURE_PROFD_COVERAGE, envs[i]);
        if (r == 0) {
            r = merge_feature_read_into(&m->inputs[i], PD_FEATURE_CLOCK_DATA, envs[i]);
            r = r == -ENOENT ? 0 : r;
        }
    }
    return r;
}

/* Returns the wall-clock time of a recording minus the time of its clock, modulo 2^64. */
static uint64_t merge_feature_offset_of(const PdEnvironment *env) {
    return env->clock_data_wall_ns - env->clock_data_clockid_ns;
}

/* The result has the CLOCK_DATA of the first recording. */
static int merge_feature_align_coverages(const Merge *m, PdEnvironment **envs) {
    for (size_t i = 1; i < m->n_inputs; i++) {
        const PdEnvironment *first = envs[0], *env = envs[i];

        if (!first->has[PD_FEATURE_CLOCK_DATA] || !env->has[PD_FEATURE_CLOCK_DATA] ||
            first->clock_data_clockid != env->clock_data_clockid)
            continue;
        if (pd_coverage_align(&envs[i]->coverage, merge_feature_offset_of(env),
                              merge_feature_offset_of(first)) < 0)
            return -ENOENT;
    }
    return 0;
}

static int merge_feature_make_coverage(Merge *m, unsigned bit) {
    _cleanup_free_ PdEnvironment **envs = calloc(m->n_inputs, sizeof(*envs));
    _cleanup_free_ const PdCoverage **list = calloc(m->n_inputs, sizeof(const PdCoverage *));
    _cleanup_(pd_coverage_done) PdCoverage all = {};
    _cleanup_(buffer_done) Buffer body = {};
    int r = envs && list ? merge_feature_read_coverages(m, envs) : -ENOMEM;

    if (r == 0)
        r = merge_feature_align_coverages(m, envs);
    for (size_t i = 0; r == 0 && i < m->n_inputs; i++)
        list[i] = &envs[i]->coverage;
    if (r == 0)
        r = pd_coverage_unite(list, m->n_inputs, &all);
    if (r == 0)
        r = pd_encode_coverage(&body, &all, m->sink.options.swap);
    if (r == 0)
        r = merge_feature_set_body(m, bit, &body);
    for (size_t i = 0; envs && i < m->n_inputs; i++)
        pd_environment_free(envs[i]);
    /* No perf looks for it in a stream. */
    return r == -ENOENT || r == PD_WRITER_LEFT_OUT ? 0 : r;
}

/* clang-format off */
static const struct {
    unsigned bit;
    Maker make;
} makers[] = {
    {PD_FEATURE_TRACING_DATA,  merge_feature_make_tracing_data},
    {PD_FEATURE_BUILD_ID,      merge_feature_unite_lists},
    {PD_FEATURE_EVENT_DESC,    merge_feature_make_event_desc},
    {PD_FEATURE_GROUP_DESC,    merge_feature_make_group_desc},
    {PD_FEATURE_AUXTRACE,      merge_feature_leave_to_others},
    {PD_FEATURE_SAMPLE_TIME,   merge_feature_make_sample_time},
    {PD_FEATURE_DIR_FORMAT,    merge_feature_leave_to_others},
    {PD_FEATURE_BPF_PROG_INFO, merge_feature_unite_lists},
    {PD_FEATURE_BPF_BTF,       merge_feature_unite_lists},
    {PD_FEATURE_COMPRESSED,    merge_feature_leave_to_others},
    {PD_FEATURE_PROFD_COVERAGE, merge_feature_make_coverage},
};
/* clang-format on */

static Maker merge_feature_maker_of(unsigned bit) {
    for (size_t i = 0; i < ARRAY_SIZE(makers); i++)
        if (makers[i].bit == bit)
            return makers[i].make;
    return merge_feature_take_first;
}

int merge_features(Merge *m) {
    for (unsigned bit = 1; bit < PD_FEATURE_BITS; bit++) {
        int r = merge_feature_any_has(m, bit) ? merge_feature_maker_of(bit)(m, bit) : 0;

        if (r < 0)
            return r;
        if (r == PD_WRITER_LEFT_OUT)
            remark(m->context, "A stream cannot hold the feature %s; it is left out.",
                   pd_feature_name(bit) ?: "of an unknown number");
    }
    return 0;
}
