/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the files of `profctl merge` share: merge.c is the command and copies the records,
 * merge-scan.c checks the inputs, merge-event.c decides which events and ids the result has,
 * merge-feature.c makes the features.
 */

#include "client/file/sink.h"
#include "client/file/target.h"
#include "client/frame/command.h"
#include "perfdata/order/order.h"
#include "perfdata/record/event-union.h"

typedef struct MergeInput {
    const char *path;
    PdReader *reader;

    /* The results of the first pass. */
    bool has_samples, has_time, has_auxtrace;
    uint64_t first_time; /* of all records with a time */
    uint64_t first_sample_time, last_sample_time;
    uint64_t kernel_start; /* address of _text; 0: unknown */

    uint32_t *index; /* for each event its index in the result */
    PdRewriter *rewriter;
    PdOrder *order;
    PdDamage bad_feature; /* the first feature that could not be copied; no text: none */

    /* The next record. */
    bool ended;
    PdRecord record;
    PdStamp stamp;
} MergeInput;

typedef struct Merge {
    Context *context;
    MergeInput *inputs; /* sorted by first_time after the scan */
    size_t n_inputs;
    PdEvents *events; /* of the result */
    Sink sink;
    Target target;
    uint64_t now;      /* time of the last written record */
    uint64_t left_out; /* records that could not be copied */
    bool has_time_conv, has_finished_init;
    Buffer rewritten;
} Merge;

/* Reads each input once and rewinds it. STATUS_OK, or a status after a message. */
int merge_scan(Merge *m);
/* Whether the recordings belong together; STATUS_OK, or a status after a message. */
int merge_compare(Merge *m);
/* Fills m->events and each input's index and rewriter. Negative errno, or 0. */
int merge_plan_events(Merge *m);
/* Passes the features to the writer. -ECANCELED: a message was printed. */
int merge_features(Merge *m);
