/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The results of `info`, and the functions that print them as text and JSON. */

#include "client/file/attribution.h"
#include "client/file/summary.h"
#include "client/frame/command.h"
#include "client/info/info-stack.h"
#include "perfdata/feature/environment.h"
#include "perfdata/writer/tally.h"

enum { INFO_TOP = 10 }; /* rows in the lists of most frequent items */

typedef struct Info {
    const char *path;
    PdReader *reader;
    PdEnvironment *environment;
    Summary summary;
    Attribution *attribution;
    PdTally *tally;  /* of mapped files */
    PdDamage damage; /* the first damage in the records or the features; text "": none */
    StackCounts stacks;
    bool has_stacks;  /* the manifest beside it has them */
    int64_t captured; /* when the file was last written, in seconds; 0: unknown */
} Info;

int info_print_text(const Context *c, const Info *info, Buffer *out);
int info_print_json(const Info *info, Fields *fields);

/* Entries of the BUILD_ID feature, or BUILD_ID records in a pipe. */
static inline uint64_t info_build_ids(const Info *info) {
    return info->environment->has[PD_FEATURE_BUILD_ID] ? info->environment->n_build_ids
                                                       : info->summary.build_id_records;
}

/* Mapped files without a build id, in a recording of profd. */
static inline uint64_t info_unidentified(const Info *info) {
    return pd_tally_totals(info->tally).n_unidentified;
}
