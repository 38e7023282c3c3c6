/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/sampler/closing.h"

#include <stdlib.h>

#include "capture/sampler/sampler-session.h"

/* Closes a session while others record: to close a tracepoint the kernel waits for every CPU. */

typedef struct Closing {
    SamplerSession *session; /* NULL: it is closed */
} Closing;

static void closing_work(void *job) {
    Closing *closing = job;

    closing->session = sampler_session_free(closing->session, true);
}

/* If profd ends before this runs, the keeper closes the events. */
static void closing_done(void *job) {
    Closing *closing = job;

    if (closing->session)
        sampler_session_free(closing->session, false);
    free(closing);
}

SamplerSession *closing_begin(SamplerSession *session) {
    const SamplerOptions *options = &session->sampler->options;
    Closing *closing = options->aside ? malloc(sizeof(*closing)) : NULL;

    for (size_t i = 0; i < session->rings.n; i++) {
        CpuRing *ring = session->rings.rings[i];

        ring->source = loop_source_free(ring->source);
    }
    if (closing) {
        closing->session = session;
        if (options->aside(options->userdata, closing_work, closing_done, closing) == 0)
            return NULL;
        free(closing);
    }
    return sampler_session_free(session, true);
}
