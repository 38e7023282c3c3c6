/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The keeper's children that are no recorders: those that open files, and the program that reads
 * ELF files. One that waits for a file system cannot be killed before that answers, so they are
 * counted by kind, and a kind of which all are stuck holds up no other.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "keeper/request/keeper-request.h"

enum { HELPERS_MAX = 16 }; /* of a lane; more than one is alive where some are stuck */

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
/* One was reaped, and had used so much. */
void helpers_ended(Helpers *helpers, pid_t pid, uint64_t cpu_ns);
/* What all of them have used so far. */
uint64_t helpers_cpu_ns(const Helpers *helpers);
void helpers_kill(const Helpers *helpers);

/* In a fork: nothing of the keeper stays open but a and b (-1: none), and with `is_silent` not
 * the log either. It ends with the keeper. */
void helper_let_go(int a, int b, bool is_silent);
