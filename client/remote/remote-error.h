/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Words errors of the daemon as a sentence and an exit status. */

#include <jansson.h>

#include "util/buffer.h"

/* The facts about a failed call; all fields but `method` are optional. */
typedef struct RemoteFailure {
    const char *method;       /* like "ListSessions" */
    const char *command;      /* as the user typed it; NULL: unknown */
    const char *error;        /* "NoSuchSession", or with its interface if that is not ours */
    const json_t *parameters; /* escaped */
    const char *version;      /* of the daemon */
} RemoteFailure;

/* Appends the escaped sentence and returns the ExitStatus. */
int remote_error_describe(const RemoteFailure *failure, Buffer *out);

/* Explains why the user lacks the right, and on a line of its own what helps. The group names are
 * parameters for tests. */
void remote_error_describe_denial(const char *command, const char *method, Buffer *out);
