/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A sentence, at most once a minute, about time that a destination does not get any more. */

#include <stdbool.h>
#include <stdint.h>

enum { LOSS_SENTENCE_MAX = 192 };

/* Since a state was made, also over restarts. */
typedef struct LossCounts {
    uint64_t expired_ns; /* too old */
    uint64_t deleted_ns; /* by profd */
} LossCounts;

typedef struct LossNote {
    LossCounts noted; /* what sentences told so far */
    uint64_t next_ns; /* CLOCK_MONOTONIC */
} LossNote;

/* False: nothing is new, or the last sentence is not a minute ago. has_age: the destination has a
 * limit of age. */
bool loss_note_take(LossNote *note, const LossCounts *counts, bool has_age, uint64_t now_ns,
                    char ret_sentence[LOSS_SENTENCE_MAX]);
