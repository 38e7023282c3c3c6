/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The options that choose records of a recording by what they are of: --pid, --tid, --comm,
 * --cgroup, --unit and --cpu, with the meaning that they have for a snapshot.
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
/* Whether any is given. */
bool selector_options_are_set(const SelectorOptions *options);

typedef struct Selector {
    const SelectorOptions *options; /* borrowed; NULL: everything is wanted */
    Selection selection;            /* its ids are for sentences only, and may be cut */
    char **texts;                   /* names in their second form */
    size_t n_texts;
    ProcessTable *table; /* NULL: no comm and no group is asked for */
    Mismatch mismatch;
    uint8_t seen_cpus[PD_COVERAGE_CPUS_MAX / 8];
    bool any; /* a record was wanted */
} Selector;

/* -ENOMEM; after it, too, selector_done() is due. */
int selector_init(Selector *selector, const SelectorOptions *options);
void selector_done(Selector *selector);
/* Comms and groups of samples are known only when records come in order of time. */
static inline bool selector_needs_order(const Selector *selector) {
    return selector->table;
}
/* Every record, wanted or not, before the question whether it is wanted. -ENOMEM. */
int selector_feed(Selector *selector, const PdRecord *record, const PdStamp *stamp);
/* A record is wanted when it is of what was asked for, or says something about it. */
bool selector_wants(Selector *selector, const PdRecord *record, const PdStamp *stamp);
/* At the end. Where nothing was wanted, or a CPU is asked for that the recording does not have,
 * complains and returns STATUS_NOT_FOUND; `kind`: "records". */
int selector_verdict(const Selector *selector, PdReader *reader, const char *path,
                     const char *kind);
