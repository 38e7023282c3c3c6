/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The events of several recordings of one host as those of one recording: events that are the same
 * in attr and name become one, which has the ids of all of them.
 */

#include "perfdata/record/rewrite.h"

/* A recording that takes part. What pd_events_unite() fills in is given back by
 * pd_event_source_done(). */
typedef struct PdEventSource {
    const PdEvents *events; /* borrowed; none is made for this host, each has its raw bytes */
    bool swap;              /* of these bytes */
    uint32_t *index;        /* of the event that each of them becomes */
    PdRewriter *rewriter;
    bool changes; /* its records have to pass the rewriter; else they are right as they are */
} PdEventSource;

void pd_event_source_done(PdEventSource *source);
/* -E2BIG: they are too many together. */
int pd_events_unite(PdEventSource *sources, size_t n, PdEvents **ret);
