/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Processes whose maps could not be read in time, and the users who made profd wait for them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    LATE_PROCESSES_MAX = 1024,
    LATE_USERS_MAX = 64,
    LATE_PATIENCE_MS = 250, /* for a process of a user without debt */
};

typedef struct LateUser {
    uid_t uid;
    uint64_t debt_ns, at_ns;
} LateUser;

typedef struct LateProcesses {
    uint32_t pids[LATE_PROCESSES_MAX]; /* a ring buffer */
    size_t first, n;
    LateUser users[LATE_USERS_MAX];
    size_t n_users;
    LateUser all;       /* together */
    uint64_t waited_ns; /* so far */
} LateProcesses;

bool late_has(const LateProcesses *late, uint32_t pid);
/* Adds it as the last one, unless it is there, or there are too many. */
void late_add(LateProcesses *late, uint32_t pid);
/* Takes the first one; false: there is none. */
bool late_take(LateProcesses *late, uint32_t *ret_pid);
/* Adds what profd has waited for a process of the user. */
void late_charge(LateProcesses *late, uid_t uid, uint64_t waited_ns, uint64_t now_ns);
/* How long to wait now for a process of the user that is not known to be late; 0: not at all. */
unsigned late_patience_ms(LateProcesses *late, uid_t uid, uint64_t now_ns);
