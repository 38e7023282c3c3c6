/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/merge/merge-state.h"

#include <errno.h>

/*
 * Which events the result of a merge has: those of all its inputs, each once, and for each input
 * what its records have to be rewritten by.
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
