/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Words for the reasons why a session is less than asked for; the set itself is Degraded. */

#include "util/buffer.h"

typedef struct DegradedReason {
    unsigned reason;
    const char *name, *event, *meaning, *remedy;
} DegradedReason;

/* All there are, each with its bit; *ret_n of them. */
const DegradedReason *degraded_reasons(size_t *ret_n);
/* "lost, throttled"; nothing for an empty set. */
void degraded_names(Buffer *out, unsigned set);
/* One line in the log for each reason that is new, with what helps, and one for what is over. */
void degraded_tell(const char *session, unsigned before, unsigned now);
