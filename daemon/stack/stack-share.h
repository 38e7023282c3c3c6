/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How many stacks of a session were whole in the last ten minutes that have ended. */

#include <stdbool.h>
#include <stdint.h>

enum { STACK_SHARE_MINUTES = 10, STACK_SHARE_LEAST = 1000 };

typedef struct StackShare {
    struct {
        uint64_t minute, whole, all;
    } minutes[STACK_SHARE_MINUTES + 1];
} StackShare;

/* `all` stacks were unwound since the last call, `whole` of them up to their outermost frame. */
void stack_share_add(StackShare *share, uint64_t now_ns, uint64_t whole, uint64_t all);
/* Less than four fifths of at least STACK_SHARE_LEAST stacks were whole. */
bool stack_share_is_short(const StackShare *share, uint64_t now_ns);
