/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The records that profd adds to a stream of Follow(); io.profd.Control.varlink describes them. */

#include "perfdata/feature/coverage.h"
#include "perfdata/record/record.h"
#include "util/buffer.h"

/* As the id of an EVENT_TYPE record. */
#define PD_STREAM_MARK_ID 0x70726f66642d6d6bULL

typedef struct PdStreamMark {
    bool is_gap;          /* else it is a watermark */
    uint64_t time;        /* each sample older than this was sent; CLOCK_MONOTONIC */
    PdGap gap;            /* CLOCK_MONOTONIC */
    uint64_t real_offset; /* add it to get CLOCK_REALTIME, modulo 2^64 */
} PdStreamMark;

void pd_stream_mark_write(Buffer *out, const PdStreamMark *mark);
/* False: it is another record. */
bool pd_stream_mark_read(const PdRecord *record, PdStreamMark *ret);
