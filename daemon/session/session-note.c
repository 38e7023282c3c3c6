/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/session-private.h"
#include "util/log.h"

/* What every part of a session reports: failures to the log, facts to the manifest. */

bool session_waits(const Session *session) {
    return session->emission && emission_waits(session->emission);
}

int session_log_failure(const Session *session, int error, const char *what) {
    return log_error(error, "Failed to %s of session '%s': %m", what, session->config.name);
}

int session_note(void *userdata, const SegmentFacts *facts) {
    Session *session = userdata;
    int r = store_session_note(session->store, facts);

    if (r < 0)
        log_debug("A fact for the manifest of session '%s' was lost", session->config.name);
    return 0;
}
