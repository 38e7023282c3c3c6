/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/sampler/opening.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture/sampler/closing.h"
#include "capture/sampler/sampler-session.h"
#include "util/log.h"

/*
 * Opens a session while others record. The kernel may take a second for the events of a session,
 * and much more on a busy host: to close a tracepoint it waits for every CPU. So the owner lends a
 * thread, and the main thread goes on with sweeps and calls. The thread works on a session that is
 * in no list; the two threads share only the lock of the keeper's connection.
 */

enum { ERROR_TEXT_MAX = 512 };

struct SamplerOpening {
    Sampler *sampler;
    SamplerSession *session; /* NULL: it could not be opened */
    bool is_quiet, is_trial, is_done, is_cancelled;
    int result;
    char error[ERROR_TEXT_MAX];
};

static void opening_open_aside(void *job) {
    SamplerOpening *opening = job;

    log_keep_error(opening->error, sizeof(opening->error));
    log_mute(opening->is_quiet || opening->is_trial);
    opening->result = opening->is_trial ? sampler_session_settle(opening->session)
                                        : sampler_session_open(opening->session);
    log_mute(false);
    log_keep_error(NULL, 0);
    /* The main thread frees the session itself, and may cancel it at any time. */
    if (opening->result < 0)
        ring_set_done(&opening->session->rings, true);
}

static SamplerOpening *opening_free(SamplerOpening *opening) {
    if (opening->session)
        closing_begin(opening->session);
    free(opening);
    return NULL;
}

static void opening_opened(void *job) {
    SamplerOpening *opening = job;
    const SamplerOptions *options = &opening->sampler->options;

    opening->is_done = true;
    if (opening->result < 0)
        opening->session = sampler_session_free(opening->session, false);
    if (opening->is_cancelled)
        opening_free(opening);
    else
        options->on_opened(options->userdata);
}

static int opening_begin(Sampler *sampler, const SessionConfig *config, bool quiet, bool is_trial,
                         SamplerOpening **ret) {
    SamplerOpening *opening = calloc(1, sizeof(*opening));
    int r;

    if (!opening)
        return -ENOMEM;
    *opening = (SamplerOpening){
        .sampler = sampler, .is_quiet = quiet, .is_trial = is_trial, .result = -ECANCELED};
    r = sampler_session_prepare(sampler, config, &opening->session);
    if (r == 0)
        r = sampler->options.aside(sampler->options.userdata, opening_open_aside, opening_opened,
                                   opening);
    if (r < 0) {
        (void)log_error(r, "Failed to begin to open session '%s': %m", config->name);
        if (opening->session)
            sampler_session_free(opening->session, false);
        free(opening);
        return r;
    }
    *ret = opening;
    return 0;
}

int sampler_opening_begin(Sampler *sampler, const SessionConfig *config, bool quiet,
                          SamplerOpening **ret) {
    return opening_begin(sampler, config, quiet, false, ret);
}

int sampler_trial_begin(const SamplerSession *session, SamplerOpening **ret) {
    return opening_begin(session->sampler, &session->config, true, true, ret);
}

int sampler_trial_end(SamplerOpening *opening, const SamplerSession *session) {
    bool is_better;

    if (!opening->is_done)
        return 0;
    /* The number of events does not show it: the default event may stand in for a missing one. */
    is_better = opening->result == 0 && plan_notes_n_left_out(&opening->session->notes) <
                                            plan_notes_n_left_out(&session->notes);
    opening_free(opening);
    return is_better ? 1 : -ENOENT;
}

int sampler_opening_end(SamplerOpening *opening, SamplerSession **ret, char *error, size_t size) {
    int r;

    /* Until then the result belongs to the other thread. */
    if (!opening->is_done)
        return 0;
    r = opening->result;
    if (r == 0)
        r = sampler_session_join(opening->session);
    if (r == 0) {
        *ret = opening->session;
        opening->session = NULL;
    }
    snprintf(error, size, "%s", opening->error);
    opening_free(opening);
    return r < 0 ? r : 1;
}

SamplerOpening *sampler_opening_cancel(SamplerOpening *opening) {
    if (!opening)
        return NULL;
    if (opening->is_done)
        return opening_free(opening);
    opening->is_cancelled = true;
    atomic_store(&opening->session->is_unwanted, true);
    return NULL;
}
