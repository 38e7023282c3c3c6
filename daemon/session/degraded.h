/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Names and texts for the reasons why a session is degraded; the set itself is Degraded. */

#include "util/buffer.h"

typedef struct DegradedReason {
    unsigned reason;
    const char *name, *event, *meaning, *remedy;
} DegradedReason;

/* Returns all reasons and their bits; *ret_n of them. */
const DegradedReason *degraded_reasons(size_t *ret_n);
/* Appends names like "lost, throttled"; appends nothing for an empty set. */
void degraded_names(Buffer *out, unsigned set);
/* Appends what helps, for a session; NULL: for any, then the text has SESSION for its name. */
void degraded_put_remedy(Buffer *out, const DegradedReason *reason, const char *session);
/* Logs one line for each new reason, with its remedy, and one for each reason that has ended. */
void degraded_log(const char *session, unsigned before, unsigned now);
