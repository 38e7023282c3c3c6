/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Merges the events of several recordings of one host: events with the same attr and name become
 * one event, which has the ids of all of them.
 */

#include "perfdata/record/rewrite.h"

/* A recording to merge. pd_event_source_done() frees what pd_events_unite() fills in. */
typedef struct PdEventSource {
    const PdEvents *events; /* borrowed; all come from files and have raw bytes */
    bool swap;              /* the byte order of these bytes is swapped */
    uint32_t *index;        /* for each event the index of its event in the result */
    PdRewriter *rewriter;
    bool changes; /* its records have to pass the rewriter; else they are correct as they are */
} PdEventSource;

void pd_event_source_done(PdEventSource *source);
/* -E2BIG: there are too many events in total. */
int pd_events_unite(PdEventSource *sources, size_t n, PdEvents **ret);
