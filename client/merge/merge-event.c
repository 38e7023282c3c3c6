/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/merge/merge-state.h"

#include <errno.h>

/*
 * Computes the events of the merged recording: those of all inputs, each once, and for each input a
 * rewriter for its records.
 */

int merge_plan_events(Merge *m) {
    _cleanup_free_ PdEventSource *sources = calloc(m->n_inputs, sizeof(*sources));
    int r;

    if (!sources)
        return -ENOMEM;
    for (size_t i = 0; i < m->n_inputs; i++)
        sources[i] = (PdEventSource){.events = pd_reader_events(m->inputs[i].reader),
                                     .swap = pd_reader_header(m->inputs[i].reader)->swap};
    r = pd_events_unite(sources, m->n_inputs, &m->events);
    for (size_t i = 0; i < m->n_inputs; i++) {
        m->inputs[i].index = sources[i].index;
        m->inputs[i].rewriter = sources[i].rewriter;
    }
    return r;
}
