/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer/writer-internal.h"

/* How much has been written: sums over the streams of a recording, and the tally's counts. */

uint64_t pd_writer_raw_bytes(const PdWriter *w) {
    uint64_t n = 0;

    for (unsigned i = 0; i < w->n_streams; i++)
        n += w->streams[i].raw_bytes;
    return n;
}

uint64_t pd_writer_unidentified(const PdWriter *w) {
    return w->tally ? pd_tally_totals(w->tally).n_unidentified : 0;
}

uint64_t pd_writer_stored_bytes(const PdWriter *w) {
    uint64_t n = 0;

    for (unsigned i = 0; i < w->n_streams; i++)
        n += pd_stream_end(&w->streams[i]) - (i == 0 ? w->data_offset : 0);
    return n;
}
