/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Errors of the daemon as a sentence and an exit status. */

#include <jansson.h>

#include "util/buffer.h"

/* What is known of the call that failed; all but `method` may be missing. */
typedef struct RemoteFailure {
    const char *method;       /* as "ListSessions" */
    const char *command;      /* as the user typed it; NULL: not known */
    const char *error;        /* "NoSuchSession", or with its interface where that is not ours */
    const json_t *parameters; /* safe to show */
    const char *version;      /* of the daemon */
} RemoteFailure;

/* Appends the sentence, safe to show, and returns the ExitStatus. */
int remote_error_describe(const RemoteFailure *failure, Buffer *out);

/* Why the caller may not, and on a line of its own what he can do. For tests, the group names are
 * put in. */
void remote_error_describe_denial(const char *command, const char *method, Buffer *out);
