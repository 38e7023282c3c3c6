/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/stack-text.h"

#include "client/frame/figure.h"
#include "util/macro.h"
#include "util/text.h"

/*
 * One row for each way in which the walk of a stack can end, in the order in which they are shown.
 * The sentence is for people: how many stacks are whole, and why the others are not.
 */

/* The rows that are not a reason: the first and the last one. */
enum { ROW_WHOLE, ROW_NO_USER = STACK_ROWS - 1 };

/* clang-format off */
const StackRow stack_rows[STACK_ROWS] = {
    { "whole",     "stacks_whole",     NULL                                                                      },
    { "truncated", "stacks_truncated", "truncated"                                                               },
    { "pending",   "stacks_pending",   "whose unwind tables were not there"                                      },
    { "refused",   "stacks_refused",   "in files that have no unwind tables, or that profd may not read or keep" },
    { "anonymous", "stacks_anonymous", "in code made at run time"                                                },
    { "noRule",    "stacks_no_rule",   "in code without unwind rules"                                            },
    { "noCode",    "stacks_no_code",   "with a return address in no code"                                        },
    { "stuck",     "stacks_stuck",     "on a stack that is not in order"                                         },
    { "bits32",    "stacks_bits32",    "of 32-bit programs"                                                      },
    { "noUser",    "stacks_no_user",   NULL                                                                      },
};
/* clang-format on */

void stack_text_put(Buffer *out, const StackCounts *counts) {
    const uint64_t whole = counts->samples[ROW_WHOLE];
    const char *separator = "; ";
    uint64_t all = 0;

    for (size_t i = 0; i < ROW_NO_USER; i++)
        all += counts->samples[i];
    if (all == 0)
        return;
    text_printf(out, "%.1f %% of ", 100.0 * (double)whole / (double)all);
    figure_count(out, all);
    text_puts(out, " whole");
    for (size_t i = 0; i < STACK_ROWS; i++) {
        if (!stack_rows[i].text || counts->samples[i] == 0)
            continue;
        text_puts(out, separator);
        figure_count(out, counts->samples[i]);
        text_printf(out, " %s", stack_rows[i].text);
        separator = ", ";
    }
}
