/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/loss-note.h"

#include <inttypes.h>
#include <stdio.h>

#include "util/clock.h"

/*
 * Counters go in, and the difference to what was told before comes out as a sentence. What is lost
 * within a minute of a sentence is told by the next one, so the sentences add up to the counters.
 */

#define LOSS_EVERY_NS (60 * NS_PER_SECOND)

/* Less than a second is rounded up, so that no sentence says that nothing was lost. */
static uint64_t loss_note_seconds(uint64_t ns) {
    return ns < NS_PER_SECOND ? 1 : (ns + NS_PER_SECOND / 2) / NS_PER_SECOND;
}

bool loss_note_take(LossNote *note, const LossCounts *counts, bool has_age, uint64_t now_ns,
                    char ret_sentence[LOSS_SENTENCE_MAX]) {
    uint64_t expired_ns = counts->expired_ns - note->noted.expired_ns;
    uint64_t deleted_ns = counts->deleted_ns - note->noted.deleted_ns;
    int n = 0;

    if ((expired_ns == 0 && deleted_ns == 0) || now_ns < note->next_ns)
        return false;
    if (expired_ns > 0)
        n = snprintf(ret_sentence, LOSS_SENTENCE_MAX,
                     "%" PRIu64 " s became too old for %s before they were sent%s",
                     loss_note_seconds(expired_ns),
                     has_age ? "the engine (MaxAgeSec=)" : "the list of what was not sent",
                     deleted_ns > 0 ? ", and " : "");
    if (deleted_ns > 0)
        (void)snprintf(ret_sentence + n, LOSS_SENTENCE_MAX - (size_t)n,
                       "profd deleted %" PRIu64 " s, to stay within its limits, before they were "
                       "sent",
                       loss_note_seconds(deleted_ns));
    note->noted = *counts;
    note->next_ns = now_ns + LOSS_EVERY_NS;
    return true;
}
