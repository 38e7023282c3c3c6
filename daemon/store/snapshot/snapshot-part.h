/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Writes one segment's part of a snapshot; Making is the state that the parts share. */

#include "perfdata/reader/frame.h"
#include "store/snapshot/build-request.h"
#include "store/window/record-filter.h"
#include "store/window/segment-replay.h"

enum { PART_FILES_MAX = 65 };

typedef struct Making {
    const Build *build;
    Window *window;
    PdEvents *events; /* of the resulting recording */
    SegmentReplay *replay;
    Emission *emission; /* NULL: there was no sample yet */
    SnapshotWriter writer;
    RecordFilter filter;
    Buffer rewritten, tracing;
    uint64_t samples, lost;
    uint64_t first_real_ns, last_real_ns;
    PdTrailer trailer; /* of the side-band that is generated */
    bool has_trailer;
    bool cpus_unknown; /* some segment does not say which CPUs it recorded */
} Making;

/* Reads the part and writes the wanted records. `next`: the next part, or NULL. */
int making_take_part(Making *making, WindowPart *part, WindowPart *next);
