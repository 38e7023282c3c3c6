/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The options that select records: --pid, --tid, --comm, --cgroup, --unit and --cpu, with the same
 * meaning as for a snapshot.
 */

#include "client/frame/option.h"
#include "perfdata/reader/reader.h"
#include "process/mismatch.h"
#include "process/table/table.h"

typedef struct SelectorOptions {
    OptionNumbers pids, tids, cpus;
    OptionWords comms, cgroups, units;
} SelectorOptions;

void selector_options_done(SelectorOptions *options);
/* Whether any of them is given. */
bool selector_options_are_set(const SelectorOptions *options);

typedef struct Selector {
    const SelectorOptions *options; /* borrowed; NULL: everything is selected */
    Selection selection;            /* its ids are only for messages, and may be cut */
    char **texts;                   /* second forms of names */
    size_t n_texts;
    ProcessTable *table; /* NULL: no comm and no group is selected */
    Mismatch mismatch;
    uint8_t seen_cpus[PD_COVERAGE_CPUS_MAX / 8];
    bool any; /* some record matched */
} Selector;

/* -ENOMEM; call selector_done() even after a failure. */
int selector_init(Selector *selector, const SelectorOptions *options);
void selector_done(Selector *selector);
/* Comms and groups of samples are known only if records come in order of time. */
static inline bool selector_needs_order(const Selector *selector) {
    return selector->table;
}
/* Feed every record before asking whether it matches. -ENOMEM. */
int selector_feed(Selector *selector, const PdRecord *record, const PdStamp *stamp);
/* Whether a record belongs to the selection, or describes something in it. */
bool selector_wants(Selector *selector, const PdRecord *record, const PdStamp *stamp);
/* Where nothing matched, appends "match unit 'shop'." and names that may be meant. */
void selector_put_mismatch(const Selector *selector, Buffer *out);
/* Call it at the end. If nothing matched, or a selected CPU is not in the recording, complains and
 * returns STATUS_NOT_FOUND; `kind`: for example "records". */
int selector_verdict(const Selector *selector, PdReader *reader, const char *path,
                     const char *kind);
