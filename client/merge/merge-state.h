/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the files behind `profctl merge` share: merge.c is the command and moves the records,
 * merge-scan.c looks at what is to be merged and whether it may be, merge-event.c decides which
 * events and ids come out, merge-feature.c makes the features.
 */

#include "client/file/sink.h"
#include "client/file/target.h"
#include "client/frame/command.h"
#include "perfdata/order/order.h"
#include "perfdata/record/event-union.h"

typedef struct MergeInput {
    const char *path;
    PdReader *reader;

    /* What the first pass found. */
    bool has_samples, has_time, has_auxtrace;
    uint64_t first_time; /* of all records that tell one */
    uint64_t first_sample_time, last_sample_time;
    uint64_t kernel_start; /* address of _text; 0: not known */

    uint32_t *index; /* of the event that each of its events becomes */
    PdRewriter *rewriter;
    PdOrder *order;

    /* The record that is next. */
    bool ended;
    PdRecord record;
    PdStamp stamp;
} MergeInput;

typedef struct Merge {
    Context *context;
    MergeInput *inputs; /* by first_time, once they were scanned */
    size_t n_inputs;
    PdEvents *events; /* of the result */
    Sink sink;
    Target target;
    uint64_t now;      /* time of the record last written */
    uint64_t left_out; /* records that could not be taken over */
    bool has_time_conv, has_finished_init;
    Buffer rewritten;
} Merge;

/* Reads each input once and rewinds it. STATUS_OK, or it was said why not. */
int merge_scan(Merge *m);
/* Whether the recordings belong together; STATUS_OK, or it was said why not. */
int merge_compare(Merge *m);
/* Fills m->events and each input's index and rewriter. Negative errno, or 0. */
int merge_plan_events(Merge *m);
/* Hands the features to the writer. -ECANCELED: it was said why not. */
int merge_features(Merge *m);
