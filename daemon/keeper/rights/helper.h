/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The keeper's children that are not recorders: processes that touch what other users can make
 * hang, and the program that reads ELF files. A helper that waits for a file system cannot be
 * killed before that answers, so helpers are counted by kind, and a kind that is stuck completely
 * does not affect the others.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "keeper/request/keeper-type.h"

enum { HELPERS_MAX = 16 }; /* of a lane; more than one is alive only if some are stuck */

typedef struct Helpers {
    struct {
        pid_t pid;
        KeeperLane lane;
    } list[KEEPER_LANES * HELPERS_MAX];
    size_t n;
    uint64_t ended_cpu_ns; /* of those that have ended */
} Helpers;

bool helpers_have_room(const Helpers *helpers, KeeperLane lane);
void helpers_add(Helpers *helpers, KeeperLane lane, pid_t pid);
/* Notes that a helper was reaped, and the CPU time it had used. */
void helpers_ended(Helpers *helpers, pid_t pid, uint64_t cpu_ns);
/* The CPU time of all helpers so far. */
uint64_t helpers_cpu_ns(const Helpers *helpers);
void helpers_kill(const Helpers *helpers);

/* In a fork: closes everything of the keeper but a and b (-1: none), with `is_silent` the log too.
 * The child ends with the keeper. */
void helper_let_go(int a, int b, bool is_silent);
